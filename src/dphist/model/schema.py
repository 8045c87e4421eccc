"""A schema file: what is public about the records, what will be asked, and who is protected."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dphist.errors import DomainError, InputError
from dphist.model.domain import Domain
from dphist.model.domain.space import attribute_from_json
from dphist.model.domain.toml import parsed
from dphist.model.measure import Measure
from dphist.model.unit import Unit
from dphist.model.workload import Workload


@dataclass(frozen=True, kw_only=True)
class Schema:
    """What a schema file says: always the domain, and what will be asked and who is protected where it says so.

    ``workload = "marginals:2"`` (or ``workload = {marginals = [["age", "sex"]]}``) and ``unit = "rows=5, id=user"`` (or
    ``unit = {rows = 5, id = "user"}``) stand before the first ``[[attribute]]``.

    Args:
        domain: The attributes.
        workload: What will be asked.
        unit: Who is protected.
        measures: What is added up, each a ``[[measure]]`` table with name, low and high.

    Example:
        >>> schema = Schema.read('''
        ... workload = "marginals:2"
        ... unit = {rows = 5, id = "user"}
        ...
        ... [[attribute]]
        ... name = "age"
        ... kind = "ordinal"
        ... range = [0, 100]
        ...
        ... [[attribute]]
        ... name = "sex"
        ... kind = "nominal"
        ... categories = ["F", "M"]
        ... ''')
        >>> schema.workload, schema.unit.rows
        (Workload(marginals: 200 questions over age[100] × sex[2]), 5)
    """

    domain: Domain
    workload: Workload | None = None
    unit: Unit | None = None
    measures: tuple[Measure, ...] = ()

    @staticmethod
    def read(source: str | Path) -> Schema:
        """Read TOML text, or the TOML file at a path."""
        found = parsed(source)
        domain = Domain([attribute_from_json(table) for table in found["attribute"]])
        try:
            workload = Workload.parse(domain, found["workload"]) if "workload" in found else None
            unit = Unit.parse(found["unit"]) if "unit" in found else None
            measures = found.get("measure", [])
            if not isinstance(measures, list):
                raise InputError("measures are [[measure]] tables")
            added = tuple(Measure.from_json(table) for table in measures)
        except InputError as error:
            raise DomainError(str(error)) from None
        return Schema(domain=domain, workload=workload, unit=unit, measures=added)
