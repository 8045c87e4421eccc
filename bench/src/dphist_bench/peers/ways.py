"""The job in each library, in the fastest way that its documentation shows: records in, saved counts of every cell out.

Nothing of dphist may be imported but in its own way: the process may have another library only. A way has ``load() ->
version``, which does all that is done once a process, and ``publish(records, sizes, epsilon, out, **options)``. Its
imports stand inside, so that a start is that library's alone.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any


def _versions(*names: str) -> str:
    return ", ".join(f"{name} {version(name)}" for name in names)


def _columns(records: str, sizes: list[int]) -> list[Any]:
    import polars as pl

    frame = pl.read_parquet(records)
    return [frame[f"a{axis}"].to_numpy() for axis in range(len(sizes))]


def _counts(records: str, sizes: list[int]) -> Any:
    import numpy as np

    flat = np.ravel_multi_index(_columns(records, sizes), sizes)
    return np.bincount(flat, minlength=int(np.prod(sizes)))


class Ours:
    """A path and a domain in, a saved release out: every cell with its labels, the guarantee and the transcript."""

    @staticmethod
    def load() -> str:
        """Import what `publish` and `save` would import by themselves, so that a start is a start for everybody."""
        import cryptography.hazmat.primitives.ciphers  # noqa: F401
        import duckdb  # noqa: F401
        import pyarrow.parquet  # noqa: F401

        import dphist
        import dphist.publishing.door

        return f"dphist {dphist.__version__}"

    @staticmethod
    def publish(
        records: str, sizes: list[int], epsilon: str, out: str, mechanism: str = "laplace", asked: str = ""
    ) -> None:
        """Count, add noise, and save; ``asked`` names the workload that will be asked, as ``auto`` wants to know."""
        import dphist

        domain = dphist.Domain([dphist.Ordinal(f"a{axis}", range(size)) for axis, size in enumerate(sizes)])
        workload = getattr(dphist.Workload, asked)(domain) if asked else None
        dphist.publish(records, domain, epsilon, mechanism, workload=workload).save(out)


class OpenDP:
    """OpenDP by its vector measurement: counts by NumPy, then one call of `make_laplace` for all cells.

    64-bit integers in a NumPy array OpenDP takes without a loop in Python, so this is faster than its Polars interface.
    """

    @staticmethod
    def load() -> str:
        """Import OpenDP and what reads the records."""
        import opendp.prelude as dp
        import polars  # noqa: F401

        dp.enable_features("contrib")
        return _versions("opendp", "polars", "numpy")

    @staticmethod
    def publish(records: str, sizes: list[int], epsilon: str, out: str) -> None:
        """Count the cells, hand all counts over at once, save the noisy ones."""
        import numpy as np
        import opendp.prelude as dp

        space = dp.vector_domain(dp.atom_domain(T=dp.i64)), dp.l1_distance(T=dp.i64)
        laplace = dp.m.make_laplace(*space, scale=1 / float(epsilon))
        np.save(out, np.array(laplace(_counts(records, sizes).astype(np.int64)), dtype=np.int64))


class OpenDPPolars:
    """OpenDP by its Polars interface, the one its documentation starts with: a context, a query, declared keys."""

    @staticmethod
    def load() -> str:
        """Import OpenDP with Polars."""
        import opendp.prelude as dp
        import polars  # noqa: F401

        dp.enable_features("contrib")
        return _versions("opendp", "polars")

    @staticmethod
    def publish(records: str, sizes: list[int], epsilon: str, out: str) -> None:
        """Group by all attributes, with every cell of the domain as a key, so that empty cells are released too."""
        import opendp.prelude as dp
        import polars as pl

        names = [f"a{axis}" for axis in range(len(sizes))]
        every = [
            pl.LazyFrame({name: pl.int_range(size, dtype=pl.Int64, eager=True)})
            for name, size in zip(names, sizes)  # noqa: B905 -- the peer's Python may be older
        ]
        keys = every[0]
        for more in every[1:]:
            keys = keys.join(more, how="cross")
        context = dp.Context.compositor(
            data=pl.scan_parquet(records),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(epsilon=float(epsilon)),
            split_evenly_over=1,
        )
        query = context.query().group_by(*names).agg(dp.len(signed=True)).with_keys(keys)
        query.release().collect().write_parquet(out)


class Diffprivlib:
    """diffprivlib by its own histograms: `tools.histogram` for one attribute, `tools.histogramdd` for several."""

    @staticmethod
    def load() -> str:
        """Import diffprivlib and what reads the records."""
        import diffprivlib.tools  # noqa: F401
        import polars  # noqa: F401

        return _versions("diffprivlib", "polars", "numpy")

    @staticmethod
    def publish(records: str, sizes: list[int], epsilon: str, out: str) -> None:
        """Let the histogram count and add noise in one call; bins and ranges are public, as it asks."""
        import numpy as np
        from diffprivlib import tools

        columns, ranges = _columns(records, sizes), [(0, size) for size in sizes]
        if len(sizes) == 1:
            counts, _ = tools.histogram(columns[0], epsilon=float(epsilon), bins=sizes[0], range=ranges[0])
        else:
            counts, _ = tools.histogramdd(
                np.stack(columns, 1), epsilon=float(epsilon), bins=sizes, range=ranges
            )
        np.save(out, np.asarray(counts).reshape(-1))
