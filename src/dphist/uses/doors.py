"""What `Release.by`, `sum`, `mean`, `quantiles`, `cdf` and `sql` open: the uses, given to releases from above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dphist.errors import QueryError
from dphist.release import Answer, Release
from dphist.release.doors import register_uses
from dphist.release.language import Request
from dphist.uses.cube import Cube
from dphist.uses.measures import ask
from dphist.uses.sql import Rows, ask_sql


class ReleaseUses:
    """The uses of a release, as `dphist.release.doors` wants them."""

    def cube(self, release: Release, where: Mapping[str, Any] | None) -> Cube:
        """Read the release as a cube, restricted."""
        if where is not None and not (
            isinstance(where, Mapping) and all(isinstance(name, str) for name in where)
        ):
            raise QueryError("where must map attributes to what is asked of them")
        return Cube(release).dice(**(where or {}))

    def asked(self, release: Release, request: Request, confidence: float) -> Answer:
        """Answer what is asked of measures."""
        return ask(release, request, confidence)

    def sql(self, release: Release, query: str, rows: int | None, parameters: Sequence[Any]) -> Rows:
        """Run one SELECT over the released table."""
        return ask_sql(release, query, rows=rows, parameters=parameters)


register_uses(ReleaseUses())
