"""A self-assessment along NIST SP 800-226, "Guidelines for Evaluating Differential Privacy Guarantees" (2025).

The guidelines look at a deployment from the top (what is promised, to whom) down to what the promise rests on. Each
heading below is one of their concerns; the answers come from the release, and what only the custodian can answer is
marked.
"""

from __future__ import annotations

from dphist.model.exact import shown
from dphist.model.phrases import so_many
from dphist.report.accuracy import accuracy, relative
from dphist.report.dossier.known import Known, plain, to_fill, variant
from dphist.report.wording import whole


def assessment(known: Known) -> str:
    """The self-assessment, as Markdown."""
    parts = [
        f"# Self-assessment along NIST SP 800-226: {plain(known.title)}",
        f"Written by {known.software} from the release's own file. What says **TO FILL** only the custodian knows.",
    ]
    for number, (heading, answer) in enumerate((*_promise(known), *_numbers(known), *_ground(known)), 1):
        parts.append(f"## {number}. {heading}\n\n{answer.replace('TO FILL:', '**TO FILL:**')}")
    return "\n\n".join(parts) + "\n"


def _promise(known: Known) -> list[tuple[str, str]]:
    """The top of the pyramid: what is promised, to whom, and by what."""
    release, unit = known.release, known.release.guarantee.unit
    owner = (
        f"a person is named by the column {plain(unit.id)}, and at most {unit.rows} of their rows were kept"
        if unit.id
        else f"a person is taken to own at most {unit.rows} row{'s' if unit.rows != 1 else ''}"
    )
    change = "Replacing" if unit.replace else "Adding or removing"
    steps = f"{unit.steps} step{'s' if unit.steps != 1 else ''}"
    why = "" if unit.id else " " + to_fill("why nobody owns more")
    return [
        (
            "The privacy parameter",
            f"{plain(release.guarantee.describe())}. {to_fill('why this value is acceptable')}",
        ),
        (
            "The unit of privacy",
            f"{plain(unit.describe())}: {owner}. {change} the unit's records moves counts by {steps} at most.{why}",
        ),
        (
            "The variant of differential privacy",
            f"{variant(release)[0]}. Neighbouring data sets differ in one unit's records.",
        ),
        (
            "Algorithms and their correctness",
            f"{plain(known.mechanism.name)}. {known.mechanism.words} {known.mechanism.reference} "
            "The release carries the transcript of its paid answers; `dphist verify` replays the mechanism on it "
            "without data and must give the same numbers.",
        ),
        (
            "Composition and the budget",
            f"{so_many(release.questions, 'question')}, {shown(release.spent)} of {shown(release.budget.amount)} "
            f"{release.budget.symbol} spent, in exact fractions. {_paid(known)}",
        ),
    ]


def _numbers(known: Known) -> list[tuple[str, str]]:
    """What the noise does to the numbers, and to whom."""
    release = known.release
    widths = "\n".join(
        f"| {plain(row['about'])} | {row['cells']:,} | ± {row['half_width']:,.1f} | {relative(row['part'])} |"
        if row["half_width"] is not None
        else f"| {plain(row['about'])} | – | not measured: bounds only | – |"
        for row in accuracy(release)
    )
    flagged, cells = int(known.uncertain.sum()), int(known.uncertain.size)
    polished = (
        f"The counts were polished ({', '.join(release.polish)}), which biases small ones. "
        if release.polish
        else ""
    )
    return [
        (
            "Utility",
            f"{whole(release.guarantee)}: {known.total}. Half the width of a 95 % interval, the median over places in "
            "the domain:\n\n"
            "| asked about | counts added up | half width | of the answer |\n|---|---:|---|---|\n"
            f"{widths}",
        ),
        (
            "Bias, and small groups",
            f"{flagged:,} of {cells:,} published cells are flagged: half of their interval is wider than their "
            "estimate, so their noise, or what was not measured, exceeds their count. They are listed in "
            "`uncertain-cells.csv` and are published like all others: suppressing small cells would bias what is left "
            f"and tell something about them. {polished}"
            + to_fill("which groups are small, and what the flagged cells mean for them"),
        ),
    ]


def _ground(known: Known) -> list[tuple[str, str]]:
    """What the promise rests on."""
    return [
        (
            "Trust model",
            "Central: the custodian holds the records and publishes one file. "
            + to_fill("who has access to the records, the ledger and the machine"),
        ),
        (
            "Floating point and randomness",
            "Noise is drawn as exact integers from an AES-256 keystream seeded by the operating system; budgets and "
            "scales are exact fractions. No floating-point number decides a draw.",
        ),
        (
            "Side channels",
            "The claim covers what is published. Running time and memory depend on the records; nothing of them is in "
            "the file. " + to_fill("who could observe the machine while it ran"),
        ),
        (
            "Domains and bounds",
            "The attributes and their cells were declared beforehand. "
            + to_fill("that no bound, category or bin was read off the records, or what that cost"),
        ),
        ("Security and access control", to_fill("how the records are stored, encrypted, logged and deleted")),
        (
            "Exposure when data are collected",
            to_fill("how the records were collected, with what consent, and what else is done with them"),
        ),
        (
            "Who can check this",
            f"Anyone with the file (SHA-256 `{known.digest}`): `dphist verify` {plain(known.file.name)}. "
            "With the ledger, also that it is the file that was paid for.",
        ),
    ]


def _paid(known: Known) -> str:
    receipt = known.release.receipt
    if receipt is None:
        return "No ledger kept this release's payment. " + to_fill(
            "what else was published from these records"
        )
    return f"Paid from the budget {plain(repr(receipt.dataset))} as payment {receipt.payment}; see the budget memo."
