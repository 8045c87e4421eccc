"""Power cuts, simulated: files cut off anywhere. Nothing acknowledged is lost, nothing is spent twice."""

import shutil
from fractions import Fraction

import numpy as np
import pytest

import dphist
from dphist.errors import DphistError, ReleaseError

DOMAIN = dphist.Domain([dphist.Ordinal("x", range(12))])
HISTOGRAM = dphist.Histogram(DOMAIN, np.arange(12))


def copy_ledger(place, to, wal_bytes):
    """What a disk may hold after a cut: the file as last synced, and a log that ends anywhere."""
    to.mkdir()
    shutil.copy(place / "budget.db", to / "budget.db")
    (to / "budget.db-wal").write_bytes((place / "budget.db-wal").read_bytes()[:wal_bytes])


def test_the_log_cut_anywhere_loses_no_acknowledged_line(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    acknowledged = []  # (bytes of log at which the spend was acknowledged, spent)
    with dphist.Ledger.open(place / "budget.db", witness=False) as book:
        book.create("people", 1)
        acknowledged.append(((place / "budget.db-wal").stat().st_size, Fraction(0)))
        for _ in range(6):
            book.reserve("people", "1/10", purpose="cut")
            acknowledged.append(((place / "budget.db-wal").stat().st_size, book.spent("people")))
        longest = acknowledged[-1][0]
        # A page is 4,120 bytes of log; 509 is coprime to it, so cuts fall everywhere in a page.
        cuts = sorted({*range(0, longest + 1, 509), *(size for size, _ in acknowledged), longest})
        for number, cut in enumerate(cuts):
            copy_ledger(place, tmp_path / f"cut{number}", cut)
    for number, cut in enumerate(cuts):
        promised = [spent for size, spent in acknowledged if size <= cut]
        if not promised:
            continue  # before `create` was acknowledged nothing was promised
        with dphist.Ledger.open(tmp_path / f"cut{number}" / "budget.db", witness=False) as book:
            assert book.spent("people") == promised[-1]
            # And it works on: what is left can be spent, no more.
            with pytest.raises(DphistError):
                book.reserve("people", Fraction(11, 10) - promised[-1], purpose="more")
            book.reserve("people", 1 - promised[-1], purpose="the rest")
    assert len(cuts) > 50


def test_a_release_cut_anywhere_is_refused_with_a_reason(tmp_path):
    whole = tmp_path / "whole.parquet"
    dphist.publish(HISTOGRAM, epsilon=1).save(whole)
    raw = whole.read_bytes()
    cut = tmp_path / "cut.parquet"
    for size in range(0, len(raw), 7):
        cut.write_bytes(raw[:size])
        with pytest.raises(ReleaseError):
            dphist.load(cut)
    assert dphist.load(whole).counts.shape == (12,)


def test_writing_that_stops_anywhere_leaves_the_old_release(tmp_path, monkeypatch):
    import os

    path = tmp_path / "r.parquet"
    old = dphist.publish(HISTOGRAM, epsilon=1)
    old.save(path)
    before = path.read_bytes()
    new = dphist.publish(HISTOGRAM, epsilon=1)
    for name in ("fsync", "replace"):

        def fail(*_, **__):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(DphistError):
                new.save(path)
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["r.parquet"]
    new.save(path)
    assert np.array_equal(dphist.load(path).counts, new.counts)


def test_flipped_bytes_of_a_ledger_are_noticed_or_harmless(tmp_path):
    """A corrupt page: the ledger refuses, or opens and says exactly what was spent. Never less."""
    place = tmp_path / "budget.db"
    with dphist.Ledger.open(place, witness=False) as book:
        book.create("people", 1)
        for _ in range(5):
            book.reserve("people", "1/10", purpose="damage")
    with dphist.Ledger.open(place, witness=False) as book:
        truth = book.spent("people")
    raw = place.read_bytes()
    refused = 0
    for number, spot in enumerate(range(0, len(raw), max(1, len(raw) // 150))):
        copy = tmp_path / f"bad{number}.db"
        copy.write_bytes(raw[:spot] + bytes([raw[spot] ^ 0xFF]) + raw[spot + 1 :])
        try:
            with dphist.Ledger.open(copy, witness=False) as book:
                assert book.spent("people") == truth
        except DphistError:
            refused += 1
    assert refused > 5
