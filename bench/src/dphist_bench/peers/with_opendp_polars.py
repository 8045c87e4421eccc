"""OpenDP by its Polars interface, the one its documentation starts with: a context, a query, declared keys."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

dp: Any = None


def load() -> str:
    """Import OpenDP with Polars."""
    global dp
    import opendp.prelude
    import polars

    dp = opendp.prelude
    dp.enable_features("contrib")
    return f"opendp {version('opendp')}, polars {polars.__version__}"


def publish(records: str, sizes: list[int], epsilon: str, out: str) -> None:
    """Group by all attributes, with every cell of the domain as a key, so that empty cells are released too."""
    import polars as pl

    names = [f"a{axis}" for axis in range(len(sizes))]
    keys = pl.LazyFrame({names[0]: pl.int_range(sizes[0], dtype=pl.Int64, eager=True)})
    for name, size in zip(names[1:], sizes[1:]):  # noqa: B905 -- the peer's Python may be older
        keys = keys.join(pl.LazyFrame({name: pl.int_range(size, dtype=pl.Int64, eager=True)}), how="cross")
    context = dp.Context.compositor(
        data=pl.scan_parquet(records),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=float(epsilon)),
        split_evenly_over=1,
    )
    query = context.query().group_by(*names).agg(dp.len(signed=True)).with_keys(keys)
    query.release().collect().write_parquet(out)
