"""A release: estimated counts with everything needed to trust, query and verify them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dphist.errors import DphistError, NotPrivate, QueryError, VerificationError
from dphist.extras import need
from dphist.inference.estimate import Estimate, integers, nonnegative
from dphist.inference.intervals import half_widths
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spec import show
from dphist.model.domain import Domain
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import open_replay
from dphist.private.transcript import Transcript
from dphist.release.answers import Answers, Projection, label_columns
from dphist.release.asking import Asked

if TYPE_CHECKING:
    import pandas
    import polars
    import xarray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Guarantee:
    """What was promised: ε-differential privacy for one unit, and against whom a mistake would count."""

    epsilon: Fraction
    unit: Unit

    def describe(self) -> str:
        """Say it in words."""
        return f"{float(self.epsilon):g}-differential privacy for {self.unit.describe()}"


@dataclass(frozen=True, eq=False)
class Release(Asked):
    """A private histogram or cube. Everything in it has been paid for, so everything in it may be published."""

    domain: Domain
    counts: FloatArray
    guarantee: Guarantee
    mechanism: Mechanism
    transcript: Transcript
    note: str = ""
    polish: tuple[str, ...] = ()
    workload: Workload | None = None
    receipt: tuple[str, int] | None = None
    # Noise from a test seed can be subtracted by whoever knows the seed.
    test: bool = field(default=False, repr=False)

    # ---- asking -----------------------------------------------------------------------------------------

    def _answers(self, workload: Workload, confidence: float) -> Answers:
        value = self._sums(workload, "published", self.counts)
        estimate = self._estimate
        # Intervals stand on the estimate before polishing, which biases it.
        centre = self._sums(workload, "estimated", estimate.counts) if self.polish else value
        spread = estimate.errors.spread(workload)
        if workload.query is not None:
            spread = spread.combine(workload.query, len(workload))
        width = half_widths(spread, confidence)
        # An estimate whose structure was picked on its own noise names other numbers to stand on (`centre`).
        stand = getattr(estimate.errors, "centre", None)
        if stand is not None:
            centre = np.asarray(stand(workload), dtype=np.float64)
        # A count is never negative: cutting at zero keeps coverage.
        low, high = np.maximum(centre - width, 0.0), np.maximum(centre + width, 0.0)
        if stand is not None:
            low, high = np.minimum(low, np.maximum(value, 0.0)), np.maximum(high, value)
        return Answers(value, low, high, confidence, estimate.errors.method)

    def _sums(self, workload: Workload, name: str, counts: FloatArray) -> FloatArray:
        """Answer from running sums that are kept: a release is asked again and again, and never changes."""
        if workload.kind in ("cells", "prefixes"):
            return np.asarray(workload.answer(counts), dtype=np.float64)
        from dphist.kernels.summed_area import running_sums

        if name not in self._tables:
            self._tables[name] = running_sums(counts.reshape(self.domain.shape))
        return np.asarray(workload.answer_from(self._tables[name]), dtype=np.float64)

    @cached_property
    def _tables(self) -> dict[str, FloatArray]:
        return {}

    def project(self, names: str | Sequence[str], *, confidence: float = 0.95) -> Projection:
        """Sum over all other attributes, with an interval for every cell that is left."""
        kept = [names] if isinstance(names, str) else list(names)
        domain = self.domain.project(kept)
        answers = self._answers(Workload.marginals(self.domain, [kept]), confidence)
        value, low, high = (each.reshape(domain.shape) for each in (answers.value, answers.low, answers.high))
        return Projection(domain, value, low, high, confidence, answers.method)

    # ---- handing on -------------------------------------------------------------------------------------

    def polished(
        self, *, nonnegative: bool = False, integer: bool = False, total: float | None = None
    ) -> Release:
        """Give a release that is nicer to read: nowhere negative, whole numbers, a public total.

        Costs no privacy and biases the counts; intervals keep standing on the estimate before it. ``total`` must be
        public knowledge: a true total that is not would be a leak.
        """
        counts, steps = self.counts, list(self.polish)
        for wanted, step in (
            (nonnegative or total is not None, _nonnegative_step(total)),
            (integer, "integer"),
        ):
            if wanted:
                counts, steps = _polish(counts, step), [*steps, step]
        return replace(self, counts=counts, polish=tuple(steps))

    def to_pandas(self) -> pandas.DataFrame:
        """Give a row per cell with readable labels (needs pandas)."""
        pd = need("pandas", "frames")

        return pd.DataFrame({**label_columns(self.domain), "estimate": self.counts.reshape(-1)})

    def to_polars(self) -> polars.DataFrame:
        """Give a row per cell with readable labels (needs polars)."""
        pl = need("polars", "frames")

        columns = {
            name: [str(label) for label in labels] for name, labels in label_columns(self.domain).items()
        }
        return pl.DataFrame({**columns, "estimate": self.counts.reshape(-1)})

    def to_xarray(self) -> xarray.DataArray:
        """Give a labelled array, an axis per attribute (needs xarray)."""
        xr = need("xarray", "frames")

        labels = {attribute.name: list(attribute.labels) for attribute in self.domain.attributes}
        return xr.DataArray(self.counts, coords=labels, dims=list(self.domain.names), name="estimate")

    def records(self, count: int | None = None, *, seed: int = 0) -> pandas.DataFrame:
        """Make synthetic records that follow the release: each cell within one record of its share.

        Made from the published counts alone, so as private as they are; the seed is public and only decides roundings.
        ``count`` defaults to the released total.
        """
        pd = need("pandas", "frames")

        flat = np.maximum(self.counts.reshape(-1), 0.0)
        total = float(flat.sum())
        wanted = max(0, round(total)) if count is None else count
        if wanted < 0:
            raise QueryError("count must not be negative")
        if total == 0:
            flat, total = np.ones_like(flat), float(flat.size)
        # Systematic sampling: evenly spaced points along the cumulated counts, from one public starting point.
        start = ((seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64) / 2**64
        points = (np.arange(wanted) + start) * (total / max(1, wanted))
        cells = np.minimum(np.searchsorted(np.cumsum(flat), points, side="right"), flat.size - 1)
        index = np.unravel_index(cells, self.domain.shape)
        columns = {
            attribute.name: np.array(list(attribute.labels), dtype=object)[place]
            for attribute, place in zip(self.domain.attributes, index, strict=True)
        }
        return pd.DataFrame(columns)

    def save(self, path: str | PathLike[str]) -> None:
        """Write one Parquet file that any tool opens; whole or not at all."""
        from dphist.release.file import save

        if self.test:
            raise NotPrivate(
                "this release was made with a test seed and must not be saved; publish without a seed"
            )
        save(self, path)

    # ---- trusting ---------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Replay the mechanism with no data behind the gate, and insist that it gives this very release.

        That shows three things: the counts are a function of paid-for answers alone, the answers were paid for by
        no more than ε, and nothing was altered since. Raises `VerificationError` otherwise.
        """
        if self.transcript.spent() > self.epsilon:
            raise VerificationError("the transcript spends more than the guarantee says")
        counts = self._replay().counts
        for step in self.polish:
            counts = _polish(counts, step)
        if not np.array_equal(counts, self.counts):
            raise VerificationError("replaying the transcript gives other counts than the published ones")

    @cached_property
    def _estimate(self) -> Estimate:
        return self._replay()

    def _replay(self) -> Estimate:
        right, replay = open_replay(
            self.domain, self.epsilon, self.guarantee.unit, self.transcript, workload=self.workload
        )
        try:
            estimate = self.mechanism.estimate(right)
            replay.finish()
            return replace(estimate, counts=estimate.counts.reshape(self.domain.shape))
        except DphistError:
            raise
        except Exception:
            # Only answers that no mechanism asked for can make one stumble; which line it was tells a reader nothing.
            raise VerificationError(
                "the transcript does not fit the mechanism: it cannot be replayed"
            ) from None

    # ---- showing ----------------------------------------------------------------------------------------
    # Drawing lives a floor above, so it is reached by name, and only when somebody looks.

    def plot(self, *names: str, confidence: float = 0.95) -> Any:
        """Draw one attribute as bars with intervals, or two as a heat map: an Altair chart (needs ``dphist[report]``).

        Without names the first attribute is drawn, or the first two.
        """
        return import_module("dphist.report.figures").figure(self, names or None, confidence=confidence)

    def _repr_html_(self) -> str:
        """Show the release as a card in a notebook."""
        return str(import_module("dphist.report.notebook").release_html(self))

    def __repr__(self) -> str:
        cells = " × ".join(f"{attribute.name} {attribute.size}" for attribute in self.domain.attributes)
        return f"<Release {cells}; {self.guarantee.describe()}; {show(self.mechanism)}>"


def _nonnegative_step(total: float | None) -> str:
    return "nonnegative" if total is None else f"nonnegative total {float(total)!r}"


def _polish(counts: FloatArray, step: str) -> FloatArray:
    if step == "integer":
        return integers(counts)
    if step.startswith("nonnegative"):
        public = step.removeprefix("nonnegative total ") if " " in step else None
        return nonnegative(counts, None if public is None else float(public))
    raise VerificationError(f"unknown polishing step {step!r}")
