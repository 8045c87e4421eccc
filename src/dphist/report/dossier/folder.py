"""The dossier as a folder: one file for each reader, and a list of what is still to be filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from dphist.arguments import explained
from dphist.errors import OutputError
from dphist.release import load
from dphist.release.atomic import atomic
from dphist.report.dossier.assessment import assessment
from dphist.report.dossier.catalogues import croissant, dcat
from dphist.report.dossier.known import MARK, Known, plain
from dphist.report.dossier.memo import memo
from dphist.report.dossier.registry import registry_yaml

_FOR = {
    "registry_record.yaml": "OpenDP's registry of deployments",
    "self-assessment.md": "the disclosure board: along NIST SP 800-226",
    "budget-memo.md": "whoever decides on budgets",
    "croissant.json": "programs that load data sets (Croissant 1.0)",
    "dcat.json": "open-data portals (DCAT 3)",
    "uncertain-cells.csv": "readers: cells whose noise exceeds their count, flagged and not suppressed",
}


@explained
def write_dossier(
    release: str | PathLike[str],
    folder: str | PathLike[str],
    *,
    ledger: Mapping[str, Any] | None = None,
    force: bool = False,
) -> list[Path]:
    """Write the papers that go with a published release; nothing in them comes from anywhere but its file and ledger.

    Fields that no file can know say ``TO FILL``; ``README.md`` in the folder lists them.

    Args:
        release: The release's file.
        folder: Where the papers go; made if missing.
        ledger: The budget that paid, as ``dphist ledger show --json`` gives it.
        force: Write over papers that are there and say something else, be it by hand.

    Returns:
        The files that were written.

    Raises:
        OutputError: if the folder cannot be made or written to, or holds papers that were edited, or are of another
            release, unless forced; then nothing is written.
        VerificationError: if that ledger did not pay for this release.

    Example:
        >>> import dphist, numpy as np, pathlib, tempfile
        >>> from dphist.report import write_dossier
        >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
        >>> release = dphist.publish(dphist.Histogram(domain, np.array([50, 90])), epsilon=1, mechanism="laplace")
        >>> with tempfile.TemporaryDirectory() as place:
        ...     release.save(pathlib.Path(place) / "sex.parquet")
        ...     papers = write_dossier(pathlib.Path(place) / "sex.parquet", pathlib.Path(place) / "papers")
        >>> papers[0].name, len(papers)
        ('README.md', 7)
    """
    file, place = Path(release), Path(folder)
    known = Known(load(file), file, ledger)
    texts = {
        "registry_record.yaml": registry_yaml(known),
        "self-assessment.md": assessment(known),
        "budget-memo.md": memo(known),
        "croissant.json": _json(croissant(known)),
        "dcat.json": _json(dcat(known)),
    }
    texts = {"README.md": _readme(known, texts), **texts}
    contents = {name: text.encode() for name, text in texts.items()}
    contents["uncertain-cells.csv"] = _flagged(known)
    if not force:
        for name, content in contents.items():
            paper = place / name
            if paper.exists() and (not paper.is_file() or paper.read_bytes() != content):
                raise OutputError(
                    f"{paper} is there and says something else, perhaps by hand; choose another --output, or say "
                    "--force (in Python force=True) to write over it"
                )
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the folder {place}: {error.strerror}; choose another --output"
        ) from None
    for name, content in contents.items():
        with atomic(place / name) as temporary:
            temporary.write_bytes(content)
    return [place / name for name in contents]


def _flagged(known: Known) -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    sink = pa.BufferOutputStream()
    csv.write_csv(known.measured.filter(pa.array(known.uncertain.tolist(), pa.bool_())), sink)
    return bytes(sink.getvalue())


def _readme(known: Known, texts: Mapping[str, str]) -> str:
    lines = [
        f"# Papers for {plain(known.title)}",
        "",
        f"Written by {known.software} from {plain(known.file.name)} (SHA-256 `{known.digest}`).",
        "Everything in them follows from that file and the ledger, or was said by the custodian when publishing.",
        "",
        "| file | for | still to fill |",
        "|---|---|---:|",
    ]
    for name, reader in _FOR.items():
        missing = texts[name].count(f"{MARK}:") if name in texts else 0
        lines.append(f"| `{name}` | {reader} | {missing} |")
    return "\n".join([*lines, "", f"Search for `{MARK}` to find what is the custodian's to say.", ""])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
