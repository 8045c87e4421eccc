"""An ε too small for noise that can be drawn is refused before it is paid for, whatever the mechanism splits."""

import numpy as np
import pytest

import dphist
from dphist.errors import EpsilonError, NotPrivate
from dphist.publishing.making import _TINY

LINE = dphist.Histogram(
    dphist.Domain([dphist.Ordinal("x", range(48))]), np.arange(48, dtype=np.int64) % 7 * 10
)
NAMES = sorted(dphist.list_mechanisms())


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_drawn_is_never_paid(name, tmp_path):
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1)
        for epsilon in ("1e-20", "1e-15", "1e-12"):
            before = book.spent("people")
            try:
                dphist.publish(LINE, epsilon=epsilon, mechanism=name, ledger=book, dataset="people")
            except (EpsilonError, NotPrivate) as refusal:
                said = refusal
                assert book.spent("people") == before
            else:
                said = None  # type: ignore[assignment]
            assert said is None or name != "laplace" or epsilon == "1e-20"
            assert said is not None or epsilon != "1e-20"  # type: ignore[unreachable]


@pytest.mark.parametrize("name", NAMES)
def test_from_a_millionth_on_every_scale_can_be_drawn(name):
    # Below it the door rehearses; so this is where no rehearsal is needed.
    try:
        release = dphist.publish(LINE, epsilon=_TINY, mechanism=name)
    except NotPrivate:
        assert name != "laplace"
    else:
        assert np.isfinite(release.counts).all()


def test_parts_and_units_count_too(tmp_path):
    domain = dphist.Domain([dphist.Nominal("place", ["a", "b"]), dphist.Ordinal("x", range(3))])
    histogram = dphist.Histogram(domain, np.ones((2, 3), dtype=np.int64))
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1)
        for options in ({"partition_by": "place"}, {"unit": dphist.Unit(rows=10**6)}):
            with pytest.raises(EpsilonError, match="Nothing was spent"):
                dphist.publish(
                    histogram, epsilon="1e-14" if "unit" in options else "1e-17", mechanism="s1",
                    ledger=book, dataset="people", **options,
                )  # fmt: skip
        assert book.spent("people") == 0
