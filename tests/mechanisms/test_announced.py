"""Announced tables: measured, or left to chance where noise would hide them; every one of them has an interval."""

import numpy as np
import pyarrow.parquet as pq

import dphist
from dphist.mechanisms import Auto, Marginals
from dphist.mechanisms.choosing.pilot import TOTAL

SHAPE = (6, 4, 3, 2, 2)
DOMAIN = dphist.Domain([dphist.Nominal(f"x{a}", [str(v) for v in range(n)]) for a, n in enumerate(SHAPE)])
PAIRS_ASKED = dphist.Workload.marginals(DOMAIN, 2)


def _even(records):
    return np.full(SHAPE, records // int(np.prod(SHAPE)), dtype=np.int64)


def _diagonal(records):
    counts = np.zeros(SHAPE, dtype=np.int64)
    for place in range(6):
        counts[place, place * 4 // 6, place // 2, place // 3, place // 3] = records // 6
    return counts


def test_few_records_are_left_to_chance_and_pairs_have_bounds(tmp_path):
    counts = _even(288)
    release = dphist.publish(dphist.Histogram(DOMAIN, counts), epsilon="0.01", workload=PAIRS_ASKED)
    told = release.mechanism
    assert isinstance(told, Auto)
    assert isinstance(told.chosen, Marginals)
    assert told.chosen.tables == ((0,), (1,), (2,), (3,), (4,))
    for said in (told.why, release.note):
        assert said.startswith("No pair of columns was measured: the budget is too small. ")
    assert "Numbers about pairs assume independence." in release.describe()
    assert "put together as if they were independent" in told.why
    answers = release.answer(PAIRS_ASKED)
    assert not np.isnan(answers.low).any()
    assert not np.asarray(answers.measured).any()
    assert (answers.low <= answers.value).all()
    assert (answers.value <= answers.high).all()
    release.verify()
    # The file says it to whoever opens it with something else.
    release.save(tmp_path / "r.parquet")
    assert (
        pq.read_metadata(tmp_path / "r.parquet").metadata[b"intervals"].startswith(b"No pair of columns was")
    )
    assert dphist.load(tmp_path / "r.parquet").describe() == release.describe()


def test_many_records_that_depend_on_each_other_are_measured():
    counts = _diagonal(600_000)
    release = dphist.publish(dphist.Histogram(DOMAIN, counts), epsilon=1, workload=PAIRS_ASKED)
    told = release.mechanism
    assert isinstance(told, Auto)
    assert not release.note.startswith("No pair")
    assert told.look is not None
    assert told.look.total == TOTAL
    truth = np.asarray(PAIRS_ASKED.answer(counts), dtype=float)
    # Ten tables with a tenth of the budget have noise of about 10: off by 1,000 with a chance far below 1e-6.
    assert np.abs(release.answer(PAIRS_ASKED).value - truth).max() < 1000.0
    release.verify()
