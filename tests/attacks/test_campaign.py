"""The audit itself: it goes on after a stop, it does not cry wolf, and it searches where it pays."""

import numpy as np
import pytest

from dphist.audit import audit, campaign
from dphist.audit.campaign import ALPHA, Trial, claims, judge, read_trials, refuted, run_campaign
from dphist.audit.evidence import Event
from dphist.audit.neighbours import worst_pairs
from dphist.audit.page import results_page
from dphist.audit.search import search_pair
from dphist.audit.zoo.basic import WrongSensitivity
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.spec import parse


def trial(chance, number=0, mechanism="laplace"):
    return Trial(number, mechanism, "1", (8,), "p", (0,) * 8, 0, 100, 0.5, chance)


def test_holm_refutes_what_bonferroni_refutes_and_the_next():
    held = [trial(ALPHA / 2 / 100 * 0.9), *[trial(0.5)] * 99]
    assert refuted(held) == held[:1]
    assert refuted([trial(ALPHA / 2 / 100 * 1.1), *[trial(0.5)] * 99]) == []
    # Later rounds have less error to spend.
    assert refuted([trial(ALPHA / 2 * 0.9, number=1)]) == []


def test_true_claims_fall_as_rarely_as_promised():
    # Under the edge of the null, p = e^ε q exactly: p-values must not be smaller than uniform ones.
    rng = np.random.default_rng(3)
    q = 0.2
    p = np.e * q
    chances = np.array(
        [
            Event(int(rng.binomial(400, p)), 400, int(rng.binomial(400, q)), 400).chance(1.0)
            for _ in range(1500)
        ]
    )
    for level in (0.5, 0.1, 0.02):
        # Five standard deviations above the promised rate.
        assert (chances <= level).mean() <= level + 5 * np.sqrt(level / chances.size)


def test_a_campaign_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "_FIRST_SECONDS", 0.1)
    monkeypatch.setattr(campaign, "_FEWEST", 60)
    results = tmp_path / "audit.jsonl"
    ticks = iter(range(10**6))
    clock = lambda: next(ticks)  # noqa: E731
    first = run_campaign(results, 4 / 3600, mechanisms=["laplace", "uniform"], epsilons=["1"], clock=clock)
    assert 0 < len(first) < 6
    with results.open("a") as file:
        file.write('{"round": 0, "mecha')  # a crash in the middle of a line
    again = run_campaign(results, 3 / 3600, mechanisms=["laplace", "uniform"], epsilons=["1"], clock=clock)
    assert again[: len(first)] == first
    assert len(again) > len(first)
    assert len({t.key for t in again}) == len(again)
    assert read_trials(results) == again
    assert refuted(again) == []
    page = results_page(again, command="dphist audit --all", date="2026-01-01")
    assert "Every claim stands." in page
    assert "`laplace`" in page


def test_search_finds_neighbours_that_tell():
    found = search_pair(WrongSensitivity(), shape=(4,), tries=10, runs=240, seed=1)
    assert np.abs(found.one.counts - found.other.counts).sum() == 1
    report = audit(WrongSensitivity(), runs=3_000, pairs=[found], confidence=0.999)
    assert not report.passed


def test_a_refuted_claim_is_seen_by_the_judge():
    told = judge(0, "leaky", WrongSensitivity(), "1", worst_pairs()[0], 6_000)
    assert refuted([told]) == [told]
    sound = judge(0, "laplace", Laplace(), "1", worst_pairs()[0], 3_000)
    assert sound.chance > 1e-6


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.parametrize("text", claims())
def test_every_mechanism_stands(text):
    """A short attack on each: refuted wrongly with probability at most 1e-6 over all mechanisms together."""
    mechanism = parse(text)
    slow = ("mwem", "hierarchicalkd", "kdhybrid", "marginals", "s1+h", "posterior", "sparselaplace")
    runs = 450 if text.startswith(slow) else 900
    report = audit(
        mechanism, epsilon=1, runs=runs, pairs=worst_pairs()[1:3], confidence=1 - 1e-6 / len(claims())
    )
    assert report.passed, str(report)
