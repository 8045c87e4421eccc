"""The dossier as a folder: one file for each reader, and a list of what is still to be filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fractions import Fraction
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from dphist.arguments import explained
from dphist.errors import OutputError
from dphist.extras import need
from dphist.model.exact import shown
from dphist.model.phrases import counted
from dphist.release import load
from dphist.release.atomic import atomic
from dphist.report.accuracy import accuracy, relative
from dphist.report.dossier.known import MARK, Known, plain, to_fill
from dphist.report.dossier.records import croissant, dcat, registry
from dphist.report.facts import budget_tree
from dphist.report.wording import whole

_FOR = {
    "registry_record.yaml": "OpenDP's registry of deployments",
    "self-assessment.md": "the disclosure board: along NIST SP 800-226",
    "budget-memo.md": "whoever decides on budgets",
    "croissant.json": "programs that load data sets (Croissant 1.0)",
    "dcat.json": "open-data portals (DCAT 3)",
    "uncertain-cells.csv": "readers: counts that their noise exceeds, flagged and not suppressed",
}

_REGISTRY = """\
# A record for OpenDP's registry of deployments, drafted from the release.
# Fields that say TO FILL are the custodian's. Optional, from lists that the registry keeps:
# deployment.basic.data_product_sector, deployment.deployment_model.data_source_type (Static or Dynamic).
"""


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
        # JSON's texts, numbers and mappings are YAML's.
        "registry_record.yaml": _REGISTRY + _json(registry(known)),
        "self-assessment.md": filled("assessment.md", known),
        "budget-memo.md": filled("memo.md", known),
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


def filled(name: str, known: Known) -> str:
    """A paper in Markdown: the text of this folder that has this name, with what is known in its places."""
    made = need("jinja2", "report").Environment(
        trim_blocks=True, keep_trailing_newline=True, autoescape=False
    )
    made.filters.update(
        plain=plain,
        quoted=lambda text: plain(repr(text)),
        marked=_marked,
        to_fill=lambda what: _marked(to_fill(what)),
        relative=relative,
        amount=_amount,
        so_many=counted,
    )
    text = files("dphist.report.dossier").joinpath(name).read_text(encoding="utf-8")
    release = known.release
    return str(
        made.from_string(text).render(
            known=known,
            release=release,
            unit=release.guarantee.unit,
            receipt=release.receipt,
            bought=[budget_tree(release)],
            whole=whole(release.guarantee),
            ledger=known.ledger,
            accuracy=accuracy(release) if "accuracy" in text else (),
        )
    )


def _marked(text: str) -> str:
    return text.replace(f"{MARK}:", f"**{MARK}:**")


def _amount(text: str) -> str:
    """An exact fraction, or about how much where nobody could read it."""
    value = Fraction(text)
    return shown(value) if value.denominator <= 1_000 else f"≈ {float(value):.6g}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
