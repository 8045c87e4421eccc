"""What people see of a release: figures, pictures, one page that works offline, and papers for a board (`dossier/`).

It reads releases, and of a ledger what it is told. The explorer and the command line import it.
"""

from __future__ import annotations

from dphist.extras import later

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dphist.report.cuts import Cuts
    from dphist.report.dossier.folder import write_dossier
    from dphist.report.figures import figure
    from dphist.report.page import report_page
    from dphist.report.pictures import picture

__all__ = ["Cuts", "figure", "picture", "report_page", "write_dossier"]
# Whoever draws in the terminal waits for no page.
__getattr__ = later(
    {
        "Cuts": "report.cuts", "figure": "report.figures", "picture": "report.pictures",
        "report_page": "report.page", "write_dossier": "report.dossier.folder",
    }
)  # fmt: skip
