"""A sparse release: the cells of a very large domain that reached the threshold, and answers from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import NotPrivate, QueryError, ReleaseError, TooLargeError, VerificationError
from dphist.extras import need
from dphist.inference.intervals import Spread, half_widths
from dphist.mechanisms.sparselaplace import SparseLaplace
from dphist.mechanisms.spec import show
from dphist.model.domain import Domain
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_replay
from dphist.private.transcript import Entry, Transcript
from dphist.release.answers import Answers, Projection
from dphist.release.asking import Asked
from dphist.release.release import Guarantee

if TYPE_CHECKING:
    import pandas
    import pyarrow

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_DENSE = 1 << 27


@dataclass(frozen=True, eq=False)
class SparseRelease(Asked):
    """The published cells of a domain that may have 10¹⁵ of them; every other cell counts as zero.

    ``cells`` are flat positions in C order, ascending; ``values`` their noisy counts. Nobody can tell which of them
    hold records: some empty cells pass the threshold by chance, and that is part of what keeps it private.
    """

    domain: Domain
    cells: IntArray
    values: IntArray
    guarantee: Guarantee
    mechanism: SparseLaplace
    transcript: Transcript
    receipt: tuple[str, int] | None = None
    test: bool = field(default=False, repr=False)
    note: str = ""
    # What an ordinary release may also carry; a sparse one never does.
    polish: tuple[str, ...] = ()
    workload: None = None

    @property
    def scale(self) -> Fraction:
        """The scale of the noise of every cell, published or not."""
        return self.guarantee.unit.steps / self.epsilon

    @property
    def threshold(self) -> int:
        """The least noisy count that is published."""
        return self.mechanism.level(self.scale, self.domain.size)

    @cached_property
    def counts(self) -> FloatArray:
        """A dense array of the domain's shape, where one fits."""
        if self.domain.size > _DENSE:
            raise TooLargeError(
                f"the domain has {self.domain.size:,} cells and the release is sparse: read cells and values, "
                "ask answer(), or project() on fewer attributes"
            )
        dense = np.zeros(self.domain.size)
        dense[self.cells] = self.values
        dense.setflags(write=False)
        return dense.reshape(self.domain.shape)

    # ---- asking -----------------------------------------------------------------------------------------

    def _answers(self, workload: Workload, confidence: float) -> Answers:
        """Add up the published cells, with an interval that holds for a question chosen before the release was seen.

        Let y be all noisy counts of the range, published or not, and n and k how many cells it has and how many are
        published. The range holds Σy − Σnoise records, and an unpublished y is at most threshold − 1; that gives the
        upper end, which is wide where many cells are unpublished, as it must be. The lower end takes into account
        that cells may be published *because* their noise is large: it allows for the k largest of n draws.
        """
        sums, published = self._boxes(workload.low, workload.high)
        sizes = np.prod((workload.high - workload.low).astype(np.float64), axis=1)
        if workload.query is not None:
            gathered = []
            for each in (sums, published.astype(np.float64), sizes):
                total = np.zeros(len(workload))
                np.add.at(total, workload.query, each)
                gathered.append(total)
            sums, published, sizes = gathered[0], gathered[1].astype(np.int64), gathered[2]
        scale = float(self.scale)
        whole = Spread(2 * sizes * scale**2, np.full(sizes.shape, scale), sizes.astype(np.int64), self.scale)
        width = half_widths(whole, confidence)
        chosen = _largest_draws(sizes, published, scale, 1 - confidence)
        low = np.maximum(sums - np.where(published == sizes, width, chosen), 0.0)
        high = sums + width + (sizes - published) * (self.threshold - 1)
        method = (
            f"noise of every cell of the range, published or not; an unpublished cell was below {self.threshold}; "
            "holds for questions chosen beforehand"
        )
        return Answers(sums, low, np.maximum(high, low), confidence, method)

    def _boxes(self, low: IntArray, high: IntArray) -> tuple[FloatArray, IntArray]:
        """The sum and the number of published cells in every box."""
        sums, published = np.zeros(len(low)), np.zeros(len(low), dtype=np.int64)
        inner = self.domain.size // self.domain.shape[0]
        for box, (start, stop) in enumerate(zip(low, high, strict=True)):
            # Cells are in C order, so those of some first coordinates lie together.
            begin, end = np.searchsorted(self.cells, [int(start[0]) * inner, int(stop[0]) * inner])
            inside = np.ones(end - begin, dtype=bool)
            for axis in range(1, len(self.domain.shape)):
                if start[axis] > 0 or stop[axis] < self.domain.shape[axis]:
                    place = self._places[axis][begin:end]
                    inside &= (place >= start[axis]) & (place < stop[axis])
            sums[box] = float(self.values[begin:end][inside].sum())
            published[box] = int(inside.sum())
        return sums, published

    @cached_property
    def _places(self) -> tuple[IntArray, ...]:
        """The coordinate of every published cell on every axis."""
        places, rest = [], self.cells
        for size in reversed(self.domain.shape):
            rest, place = np.divmod(rest, size)
            places.append(place)
        return tuple(reversed(places))

    def project(self, names: str | Sequence[str], *, confidence: float = 0.95) -> Projection:
        """Sum over all other attributes, with an interval for every cell that is left."""
        kept = [names] if isinstance(names, str) else list(names)
        domain = self.domain.project(kept)
        if domain.size > _DENSE:
            raise TooLargeError(f"that table has {domain.size:,} cells; name fewer attributes")
        flat = np.zeros(self.cells.size, dtype=np.int64)
        for name in kept:
            flat = flat * self.domain.attribute(name).size + self._places[self.domain.axis(name)]
        sums = np.bincount(flat, weights=self.values, minlength=domain.size)
        published = np.bincount(flat, minlength=domain.size)
        size = self.domain.size / domain.size
        spread = Spread(
            np.array([2 * size * float(self.scale) ** 2]),
            np.array([float(self.scale)]),
            np.array([round(size)]),
            self.scale,
        )
        width = half_widths(spread, confidence)[0]
        sizes = np.full(domain.size, size)
        chosen = _largest_draws(sizes, published, float(self.scale), 1 - confidence)
        low = np.maximum(sums - np.where(published == sizes, width, chosen), 0.0)
        high = sums + width + (sizes - published) * (self.threshold - 1)
        method = self._answers(Workload(self.domain, *_empty(self.domain)), confidence).method
        value, least, most = (
            np.asarray(each, dtype=np.float64).reshape(domain.shape) for each in (sums, low, high)
        )
        return Projection(domain, value, least, most, confidence, method)

    # ---- handing on -------------------------------------------------------------------------------------

    def polished(
        self, *, nonnegative: bool = False, integer: bool = False, total: float | None = None
    ) -> SparseRelease:
        """Give the release itself: its counts are whole and positive as they are."""
        if total is not None:
            raise QueryError(
                "total: a sparse release cannot be moved to a public total; its small cells are unknown"
            )
        return self

    def labels(self) -> dict[str, list[Any]]:
        """The label of every published cell, by attribute."""
        columns = {}
        for attribute, place in zip(self.domain.attributes, self._places, strict=True):
            used, inverse = np.unique(place, return_inverse=True)
            named = attribute.labels
            words = np.empty(used.size, dtype=object)
            words[:] = [named[int(cell)] for cell in used]
            columns[attribute.name] = words[inverse].tolist()
        return columns

    def to_pandas(self) -> pandas.DataFrame:
        """Give a row per published cell with readable labels (needs pandas)."""
        pd = need("pandas", "frames")

        return pd.DataFrame({**self.labels(), "estimate": self.values})

    def records(self, count: int | None = None, *, seed: int = 0) -> pandas.DataFrame:
        """Make synthetic records that follow the published cells: each within one record of its share."""
        frame = self.to_pandas()
        total = int(self.values.sum())
        wanted = total if count is None else count
        if wanted < 0:
            raise QueryError("count must not be negative")
        start = ((seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64) / 2**64
        points = (np.arange(wanted if total else 0) + start) * (total / max(1, wanted))
        rows = np.minimum(np.searchsorted(np.cumsum(self.values), points, side="right"), len(frame) - 1)
        return frame.drop(columns="estimate").iloc[rows].reset_index(drop=True)

    def save(self, path: str | PathLike[str]) -> None:
        """Write one Parquet file, a row per published cell, that any tool opens; whole or not at all."""
        from dphist.release.file import atomic

        if self.test:
            raise NotPrivate(
                "this release was made with a test seed and must not be saved; publish without a seed"
            )
        with atomic(Path(path)) as temporary:
            _write(self, temporary)

    # ---- trusting ---------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Replay the mechanism with no data behind the gate, and insist that it gives this very release."""
        if self.transcript.spent() > self.epsilon:
            raise VerificationError("the transcript spends more than the guarantee says")
        right, replay = open_replay(self.domain, self.epsilon, self.guarantee.unit, self.transcript)
        pairs = self.mechanism.measure(right).values
        replay.finish()
        if pairs.shape != (self.cells.size, 2) or not (
            np.array_equal(pairs[:, 0], self.cells) and np.array_equal(pairs[:, 1], self.values)
        ):
            raise VerificationError("replaying the transcript gives other counts than the published ones")
        ascending = bool((np.diff(self.cells) > 0).all()) if self.cells.size else True
        inside = not self.cells.size or (self.cells[0] >= 0 and self.cells[-1] < self.domain.size)
        if not ascending or not inside or (self.values < self.threshold).any():
            raise VerificationError(
                "a published cell is out of order, outside the domain or below the threshold"
            )

    def __repr__(self) -> str:
        cells = " × ".join(f"{attribute.name} {attribute.size}" for attribute in self.domain.attributes)
        return (
            f"<SparseRelease {cells}, {self.cells.size:,} cells of {self.threshold} or more; "
            f"{self.guarantee.describe()}; {show(self.mechanism)}>"
        )


def _empty(domain: Domain) -> tuple[IntArray, IntArray]:
    return np.zeros((0, len(domain.shape)), dtype=np.int64), np.zeros((0, len(domain.shape)), dtype=np.int64)


def _largest_draws(sizes: FloatArray, published: IntArray, scale: float, beta: float) -> FloatArray:
    """A bound that the sum of the k largest of n Laplace draws passes with probability at most β/2.

    Over all sets of k draws: C(n, k) · Pr[sum of k ≥ t] ≤ C(n, k) · exp(−λt) · (1 − λ²b²)^−k for any λ < 1/b, since a
    discrete Laplace draw plus an independent centred fraction is a continuous one. Solved for t, least over λ.
    """
    from scipy.special import gammaln

    k = published.astype(np.float64)
    with np.errstate(invalid="ignore"):
        # Stirling loses digits at 10¹² cells; k·ln(n·e/k) is never below the logarithm of the binomial.
        sets = np.where(
            sizes < 1e9,
            gammaln(sizes + 1) - gammaln(k + 1) - gammaln(sizes - k + 1),
            k * np.log(np.e * sizes / np.maximum(k, 1)),
        )
    slopes = np.linspace(0.02, 0.998, 120)
    best = np.full(sizes.shape, np.inf)
    for slope in slopes:
        best = np.minimum(best, (sets + np.log(2 / beta) - k * np.log1p(-slope * slope)) / slope)
    return np.where(k > 0, best * scale, 0.0)


# ---- the file -------------------------------------------------------------------------------------------


def _write(release: SparseRelease, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from dphist.release.file import FORMAT, KEY

    names = {}
    for name in ("cell", "estimate"):
        chosen = name
        while chosen in release.domain.names:
            chosen += "_"
        names[name] = chosen
    (entry,) = release.transcript
    story = {
        "format": FORMAT,
        "form": "sparse",
        "domain": release.domain.to_json(),
        "guarantee": {"epsilon": str(release.epsilon), "unit": release.guarantee.unit.to_json()},
        "threshold": release.mechanism.threshold,
        "receipt": release.receipt,
        "columns": names,
        "entry": {
            "path": entry.path,
            "verb": entry.verb,
            "question": entry.question,
            "epsilon": str(entry.epsilon),
        },
    }
    columns: dict[str, Any] = {}
    for attribute, labels, place in zip(
        release.domain.attributes, release.labels().values(), release._places, strict=True
    ):
        scale = getattr(attribute, "scale", None)
        whole = not attribute.other and scale is not None and scale.form == "range"
        columns[attribute.name] = (
            pa.array(scale.values.start + scale.values.step * place)
            if whole and scale is not None
            else pa.array([str(label) for label in labels], pa.string()).dictionary_encode()
        )
    columns[names["cell"]] = pa.array(release.cells)
    columns[names["estimate"]] = pa.array(release.values)
    table = pa.table(columns).replace_schema_metadata({KEY: json.dumps(story).encode()})
    pq.write_table(table, path, compression="zstd")


def read(file: pyarrow.parquet.ParquetFile, story: dict[str, Any]) -> SparseRelease:
    """Read a sparse release that `save` wrote."""
    domain = Domain.from_json(story["domain"])
    names = story["columns"]
    cells, values = (
        np.ascontiguousarray(file.read(columns=[names[name]]).column(0).to_numpy(), dtype=np.int64)
        for name in ("cell", "estimate")
    )
    if cells.shape != values.shape:
        raise ReleaseError("its columns differ in length")
    described = story["entry"]
    answer = np.ascontiguousarray(np.stack([cells, values], axis=1))
    answer.setflags(write=False)
    entry = Entry(
        described["path"], described["verb"], described["question"], Fraction(described["epsilon"]), answer
    )
    guarantee = Guarantee(Fraction(story["guarantee"]["epsilon"]), Unit.from_json(story["guarantee"]["unit"]))
    receipt = None if story["receipt"] is None else (str(story["receipt"][0]), int(story["receipt"][1]))
    return SparseRelease(
        domain,
        cells,
        values,
        guarantee,
        SparseLaplace(threshold=story["threshold"]),
        Transcript([entry]),
        receipt=receipt,
    )
