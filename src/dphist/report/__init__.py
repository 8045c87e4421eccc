"""What people see of a release: figures, pictures, one page that works offline, and papers for a board (`dossier/`).

It reads releases, and of a ledger what it is told. The explorer and the command line import it.
"""

from dphist.report.cuts import Cuts
from dphist.report.dossier import write_dossier
from dphist.report.figures import figure
from dphist.report.page import report_page
from dphist.report.pictures import picture

__all__ = ["Cuts", "figure", "picture", "report_page", "write_dossier"]
