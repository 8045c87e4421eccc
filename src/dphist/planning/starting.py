"""A guided start: from a file nobody has described yet to a release, with every step as a plain command beside it.

What the guide takes from the file are the names and types of its columns. What is public about them, who is protected
and what will be asked are the custodian's words. The rehearsal reads the records and is shown to the custodian alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dphist.errors import InputError, OutputError
from dphist.model.domain import Domain
from dphist.model.domain.toml import quote
from dphist.model.domain.words import attribute_from_words
from dphist.model.exact import positive
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.planning.forecast import Forecast, release_forecasts
from dphist.planning.rehearsal import Rehearsal, rehearse
from dphist.private.ledger import Ledger
from dphist.publishing.checking import claimed, save_noted
from dphist.publishing.door import publish
from dphist.release import Release
from dphist.release.atomic import atomic
from dphist.sources.draft import columns_of

# What the curve of expected error is drawn at, nearly a line on logarithmic axes.
EPSILONS = ("0.1", "1", "10")


def columns(source: str) -> list[tuple[str, str]]:
    """The names of a file's columns, and their types in a few words: all that a start takes from the records."""
    return [
        (column.name, "the file gives no type" if column.family == "undeclared" else column.type.lower())
        for column in columns_of(source)
    ]


@dataclass(frozen=True, kw_only=True)
class Start:
    """What a custodian answered, and what follows from it.

    ``public`` says in words what is public about each column, ``total`` what may ever be spent on these people (the
    release's ε by default), ``dataset`` the budget's name, and ``folder`` where schema, ledger, release and report go.

    Example:
        >>> start = Start(source="visits.csv", public={"age": "0 to 99", "sex": "F, M"}, folder=Path("."))
        >>> start.domain.size
        200
        >>> start.commands["ledger"]
        'dphist ledger create budget.db visits 1 --unit row'
    """

    source: str
    public: Mapping[str, str]
    unit: str = "row"
    workload: str = ""
    epsilon: str = "1"
    total: str = ""
    dataset: str = ""
    folder: Path = Path()

    @cached_property
    def domain(self) -> Domain:
        """What the cells are."""
        found = [attribute_from_words(name, words) for name, words in self.public.items()]
        kept = [attribute for attribute in found if attribute is not None]
        if not kept:
            raise InputError("say what is public about at least one column")
        return Domain(kept)

    @cached_property
    def asked(self) -> str:
        """What people will look up: ranges of one attribute, tables of two where there are more by default."""
        proposed = "ranges" if len(self.domain.attributes) == 1 else "marginals:2"
        return self.workload.strip() or proposed

    @cached_property
    def schema(self) -> str:
        """The schema file, with what will be asked and who is protected at its head."""
        Workload.parse(self.domain, self.asked)
        head = f"workload = {quote(self.asked)}\n"
        if Unit.parse(self.unit) != Unit():
            head += f"unit = {quote(self.unit.strip())}\n"
        return f"{head}\n{self.domain.to_toml()}"

    @property
    def promise(self) -> str:
        """What follows from who is protected, in a sentence or two."""
        unit = Unit.parse(self.unit)
        if unit.id is None and unit.steps == 1:
            return "A row is protected. Whoever has two rows may lose twice the ε, three rows three times."
        noise = f" Noise is {unit.steps:,} times as large as for one row." * (unit.steps > 1)
        if unit.id is None:
            return f"Protected is {unit.describe()}.{noise}"
        return f"People are protected, whatever number of rows they have: at most {unit.rows:,} of each count.{noise}"

    @property
    def stem(self) -> str:
        """What the files are called."""
        name = Path(self.source.rpartition("::")[2] if "::" in self.source else self.source).name
        return name.partition(".")[0] or "release"

    @property
    def population(self) -> str:
        """The budget's name."""
        return self.dataset.strip() or self.stem

    @property
    def most(self) -> str:
        """What may ever be spent on these people."""
        return self.total.strip() or self.epsilon.strip()

    def file(self, kind: str) -> Path:
        """Where one of the files goes: schema, ledger, release or report."""
        names = {
            "schema": f"{self.stem}.toml",
            "ledger": "budget.db",
            "release": f"{self.stem}.release.parquet",
            "report": f"{self.stem}.report.html",
        }
        return self.folder / names[kind]

    @cached_property
    def commands(self) -> dict[str, str]:
        """Each step as a command to type."""
        schema, ledger, release, report = (
            shlex.quote(str(self.file(kind))) for kind in ("schema", "ledger", "release", "report")
        )
        source, budget = shlex.quote(self.source), shlex.quote(self.population)
        unit = shlex.quote(self.unit.strip())
        epsilon, total = self.epsilon.strip(), self.most
        return {
            "schema": f"dphist schema check {schema}",
            "plan": f"dphist plan --schema {schema} --epsilon {epsilon} --workload {shlex.quote(self.asked)}",
            "ledger": f"dphist ledger create {ledger} {budget} {total} --unit {unit}",
            "rehearse": f"dphist rehearse {source} --schema {schema} --epsilon {epsilon}",
            "publish": f"dphist publish {source} --schema {schema} --epsilon {epsilon} --ledger {ledger} "
            f"--dataset {budget} -o {release}",
            "report": f"dphist report {release} -o {report}",
            "ask": f"dphist explore {release}",
        }

    def check(self) -> None:
        """Refuse what cannot work, before anything is written or paid."""
        if positive(self.most, "total") < positive(self.epsilon.strip(), "epsilon"):
            raise InputError("total: less than this release would spend")
        _ = self.schema

    def curve(self, epsilons: Sequence[str] = EPSILONS) -> list[tuple[str, Forecast]]:
        """The error to expect of what will be asked, by ε: from the schema and made-up records alone."""
        unit = Unit.parse(self.unit)
        return [
            (epsilon, each)
            for epsilon in epsilons
            for each in release_forecasts(self.domain, epsilon, self.asked, unit=unit).values()
        ]

    def write(self, before: str | None = None) -> None:
        """Write the schema, and open the budget if there is none of this name.

        Only what an earlier round of the same start wrote, ``before``, is written over.
        """
        self.check()
        place = self.file("schema")
        # Read with what is no UTF-8 in it: that is something else, too.
        if place.exists() and place.read_text(encoding="utf-8", errors="replace") not in (
            self.schema,
            before,
        ):
            raise OutputError(
                f"{place} exists already and says something else; move it away, or start in another folder"
            )
        with atomic(place) as temporary:
            temporary.write_text(self.schema, encoding="utf-8")
        with Ledger.open(self.file("ledger")) as book:
            if self.population not in book.datasets():
                book.create(self.population, self.most, unit=Unit.parse(self.unit))

    def rehearse(self) -> Rehearsal:
        """What publishing would do with the records: for the custodian's eyes."""
        return rehearse(
            self.source, self.domain, self.unit, epsilon=self.epsilon.strip(), workload=self.asked
        )

    def publish(self, *, allow_dropped: float = 0.1) -> Release:
        """Pay, publish and save."""
        place = self.file("release")
        with claimed(place), Ledger.open(self.file("ledger")) as book:
            release = publish(
                self.source, self.domain, self.epsilon.strip(), unit=self.unit, workload=self.asked,
                ledger=book, dataset=self.population, allow_dropped=allow_dropped,
            )  # fmt: skip
            save_noted(release, place, book)
        return release
