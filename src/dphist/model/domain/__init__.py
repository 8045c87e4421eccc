"""What the cells of a histogram mean: public knowledge, declared by a person, never read from data.

A bound or a category list taken from the records would already tell something about them (the oldest age, the
rarest diagnosis), before any noise is drawn. So a `Domain` is written down first, and records are fitted to
it.
"""

from __future__ import annotations

from dphist.model.domain.hierarchy import Hierarchy
from dphist.model.domain.nominal import Nominal
from dphist.model.domain.ordinal import Ordinal
from dphist.model.domain.space import Attribute, Domain

__all__ = ["Attribute", "Domain", "Hierarchy", "Nominal", "Ordinal"]
