"""The label columns of files that were written before intervals stood in them: read, never written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dphist.model.domain import Domain
from dphist.model.domain.scales import Dates, Integers
from dphist.release.columns import Column, IntArray, text_array
from dphist.release.columns import label_columns as typed_columns


def label_columns(domain: Domain) -> list[Column]:
    """One column an attribute: whole numbers and days as such, the rest as text."""
    own = {column.name: column for column in reversed(typed_columns(domain))}
    columns = []
    for axis, attribute in enumerate(domain.attributes):
        match getattr(attribute, "scale", None):
            case Integers() | Dates(days=1) if not attribute.other:
                columns.append(own[attribute.name])
            case _:
                made = Column(attribute.name, axis, "", attribute.size, _texts(attribute))
                columns.append(made)
    return columns


def _texts(attribute: Any) -> Callable[[IntArray], Any]:
    def texts(places: IntArray) -> Any:
        labels = attribute.labels
        return text_array([labels[int(place)] for place in places])

    return texts
