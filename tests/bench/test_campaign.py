"""The audit itself: it goes on after a stop, it does not cry wolf, and it searches where it pays."""

import numpy as np
import pytest

from dphist.audit.neighbours import pair, worst_pairs
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.options import parse
from dphist_bench.attacks.attack import audit, pursue
from dphist_bench.attacks.betting import Contest, Look
from dphist_bench.attacks.law import check_law
from dphist_bench.audit import campaign
from dphist_bench.audit.campaign import ALPHA, Trial, claims, judge, read_trials, refuted, run_campaign
from dphist_bench.audit.page import results_page
from dphist_bench.audit.search import forecast, search_pair
from dphist_bench.zoo.basic import WrongSensitivity
from dphist_bench.zoo.mutants import Mutant

SETTING = [("1", (8,))]


def trial(chance, number=0, mechanism="laplace", **other):
    return Trial(number, mechanism, "1", (8,), "p", (0,) * 8, 0, 100, 0.5, chance, **other)


def test_holm_refutes_what_bonferroni_refutes_and_the_next():
    held = [trial(ALPHA / 2 / 100 * 0.9), *[trial(0.5)] * 99]
    assert refuted(held) == held[:1]
    assert refuted([trial(ALPHA / 2 / 100 * 1.1), *[trial(0.5)] * 99]) == []
    # Later rounds have less error to spend.
    assert refuted([trial(ALPHA / 2 * 0.9, number=1)]) == []


def test_one_run_above_epsilon_by_formula_is_enough():
    assert refuted([trial(1.0, loss=1.0)]) == []
    assert refuted([trial(1.0, loss=1.01)]) == [trial(1.0, loss=1.01)]


def contest_at(rng, truth, claim, batches=(60, 60, 60, 90, 130, 200, 300)):
    """Bet against a claim with scores whose log-likelihood ratio is known and reaches the truth."""
    contest, one, other = Contest(claim), np.empty(0), np.empty(0)
    for size in batches:
        now = rng.laplace(0, 1 / truth, size), rng.laplace(1, 1 / truth, size)
        scores = [np.round(truth * (np.abs(y - 1) - np.abs(y)), 9) for y in (one, other, *now)]
        if one.size:
            contest.bet([Look(*scores)])
        else:
            contest.watch(size)
        one, other = np.append(one, now[0]), np.append(other, now[1])
    return contest


def test_true_claims_fall_as_rarely_as_promised():
    # At the edge of the claim: the likeliest event is e^ε times as likely on one side, exactly.
    rng = np.random.default_rng(3)
    contests = [contest_at(rng, 1.0, 1.0) for _ in range(250)]
    chances = np.array([contest.chance for contest in contests])
    for level in (0.5, 0.1, 0.02):
        # Five standard deviations above the promised rate.
        assert (chances <= level).mean() <= level + 5 * np.sqrt(level / chances.size)
    # So does the ladder: a bound above the truth is as rare.
    wrong = np.mean([contest.bound(0.1) > 1.000001 for contest in contests])
    assert wrong <= 0.1 + 5 * np.sqrt(0.1 / chances.size)


def test_false_claims_fall_and_say_when():
    contest = contest_at(np.random.default_rng(4), 2.0, 1.0)
    assert contest.fell(1e-6)
    assert 1.2 < contest.bound(1e-6) < 2.0
    early, late = contest.fell_after(1e-1), contest.fell_after(1e-6)
    assert 60 < early <= late <= contest.runs == 900
    assert contest_at(np.random.default_rng(4), 0.5, 1.0).fell_after(1e-3) is None


def test_a_campaign_goes_on_where_it_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(campaign, "_FIRST_SECONDS", 0.1)
    monkeypatch.setattr(campaign, "_FEWEST", 150)
    results = tmp_path / "audit.jsonl"
    ticks = iter(range(10**6))
    clock = lambda: next(ticks)  # noqa: E731
    first = run_campaign(results, 4 / 3600, mechanisms=["laplace", "uniform"], settings=SETTING, clock=clock)
    assert 0 < len(first) < 6
    with results.open("a") as file:
        file.write('{"round": 0, "mecha')  # a crash in the middle of a line
    again = run_campaign(results, 3 / 3600, mechanisms=["laplace", "uniform"], settings=SETTING, clock=clock)
    assert again[: len(first)] == first
    assert len(again) > len(first)
    assert len({t.key for t in again}) == len(again)
    assert read_trials(results) == again
    assert refuted(again) == []


def test_the_page_says_what_it_does_not_show():
    trials = [
        trial(0.5, loss=1.0),
        trial(0.5, mechanism="weak", loss=0.2),
        trial(0.5, mechanism="cut", loss=0.7),
    ]
    trials[1] = Trial(**{**trials[1].__dict__, "bound": 0.1})
    trials[2] = Trial(**{**trials[2].__dict__, "epsilon": "3", "formula": "but partitions"})
    page = results_page(trials, command="dphist audit --all", date="2026-01-01")
    assert "Every claim stands." in page
    assert "Not tried at ε = 3: `laplace`, `weak`." in page
    assert "less than half of ε for `weak` (0.10)" in page
    assert "Refuted: laplace." in results_page([trial(1e-9)], command="", date="")


def test_search_finds_neighbours_that_tell():
    found = search_pair(WrongSensitivity(), shape=(4,), tries=10, runs=40, seed=1)
    assert np.abs(found.one.counts - found.other.counts).sum() == 1
    assert not audit(WrongSensitivity(), runs=1_000, pairs=[found], confidence=0.999).passed


def test_forecasts_are_near_what_an_attack_reaches():
    # Half of what laplace tells is lost on a table where uniform noise of the total tells as much: both tell all.
    assert 0.75 < forecast(Laplace(), worst_pairs()[0], 1, 300) < 1.0
    # A partition's loss has no formula, so runs on both sides are weighed.
    assert -1 <= forecast(parse("s1"), pair("few", [0, 0, 3, 3], 3), 1, 60) < 1.1


def test_a_refuted_claim_is_seen_by_the_judge():
    told = judge(0, "leaky", WrongSensitivity(), "1", worst_pairs()[0], 2_000)
    # Twice: by its runs, and because they lose 2 by formula.
    assert told.chance < ALPHA / 2
    assert told.loss == pytest.approx(2)
    assert refuted([told]) == [told]
    sound = judge(0, "laplace", Laplace(), "1", worst_pairs()[0], 3_000)
    assert sound.chance > 1e-6
    assert sound.loss == pytest.approx(1)
    assert sound.bound > 0.7


@pytest.mark.audit
@pytest.mark.slow
@pytest.mark.parametrize("text", claims())
def test_every_mechanism_stands(text):
    """A short attack on each: refuted wrongly with probability at most 1e-6 over all mechanisms together."""
    mechanism = parse(text)
    evidence = pursue(mechanism, worst_pairs((5,))[1], 1, 300, stop_early=True)
    assert not evidence.contest.fell(1e-6 / len(claims()))
    # No run may lose more than ε by formula: nothing about that is chance.
    assert evidence.largest_loss() <= 1 + 1e-6
    # That noise is as large as this formula takes it to be would show if it were not. (Of sparse cells there is no
    # formula for the noise; half of it is told by losses.)
    halved = check_law(Mutant(inner=mechanism, fault="halved"), worst_pairs((5,))[1], 1, 600)
    assert halved.sizes > 6 or text == "sparselaplace"
