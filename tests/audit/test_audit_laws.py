"""The audit knows both sides: choices and noise that do not follow their law are caught, and groups are attacked."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest

from dphist.audit.neighbours import pair
from dphist.mechanisms.options import parse
from dphist.model.budget import Budget
from dphist.model.unit import Unit
from dphist.private import gradual
from dphist.private.noise import Noise
from dphist.private.pricing import add_noise
from dphist.private.queries.wavelet import WaveletCells
from dphist.testing.gates import as_histogram
from dphist_bench.attacks.law import BEYOND, _by_bets, check_law
from dphist_bench.attacks.twin import BETS, Finished, Stage, Tally
from dphist_bench.zoo.mutants import Mutant, OneChoice, Quieter, ReusedSeed

pytestmark = pytest.mark.audit

COUNTS = np.array([9, 0, 3, 40, 2, 2, 0, 7])
SMALL = COUNTS[:5]


@pytest.mark.parametrize("name", ["structurefirst", "mwem", "phpartition"])
def test_sound_mechanisms_follow_their_law(name):
    assert check_law(parse(name), pair("here", COUNTS, 3), 1, 150).holds


@pytest.mark.parametrize("name", ["mwem(rounds=2, passes=2)", "phpartition"])
def test_choices_at_twice_their_rate_are_caught(name):
    law = check_law(Mutant(inner=parse(name), fault="insensitive"), pair("here", COUNTS, 3), 4, 3000)
    assert not law.holds
    assert law.choices > 0


def test_one_choice_is_watched():
    counts = np.array([0, 5])
    assert check_law(OneChoice(), pair("here", counts, 0), 1, 400).holds
    assert not check_law(
        Mutant(inner=OneChoice(), fault="insensitive"), pair("here", counts, 0), 1, 3000
    ).holds


def test_noise_that_is_used_twice_is_caught():
    assert not check_law(ReusedSeed(), pair("here", COUNTS, 3), 1, 500).holds
    for name in ("structurefirst", "tree"):
        assert check_law(parse(name), pair("here", COUNTS, 3), 1, 150).holds


@pytest.mark.parametrize("name", ["tree", "ahp", "dawa"])
def test_one_seed_for_all_questions_shows_at_different_prices_too(name):
    """Signs come from other words then, and stood for 3,200 runs; last bits come from the first word of each."""
    here = pair("here", SMALL, 3)
    law = check_law(Mutant(inner=parse(name), fault="reseeded"), here, 1, 600)
    assert abs(law.bits) > 6 > abs(law.signs)
    assert check_law(parse(name), here, 1, 300).holds


@pytest.mark.parametrize("name", ["laplace", "tree", "structurefirst", "efpa"])
def test_a_group_loses_no_more_than_one_person_was_promised(name):
    # Three rows of one person, in three cells or all in one: the loss of every run stays within ε.
    for other in ([9, 0, 3, 43, 2, 2, 0, 7], [10, 1, 3, 41, 2, 2, 0, 7], [9, 0, 0, 40, 2, 2, 0, 7]):
        stage = Stage(as_histogram(COUNTS), as_histogram(np.array(other)), 1, Unit(rows=3))
        worst = 0.0
        for _ in range(60):
            tally = Tally(stop_early=True)
            with suppress(Finished):
                parse(name).estimate(stage.open(tally))
            worst = max(worst, abs(tally.loss))
        assert worst <= 1 + 1e-9


def test_a_group_that_is_forgotten_shows():
    stage = Stage(as_histogram(COUNTS), as_histogram(COUNTS + np.eye(1, 8, 3, dtype=int)[0] * 3), 1, Unit())
    losses = []
    for _ in range(60):
        tally = Tally(stop_early=True)
        with suppress(Finished):
            parse("laplace").estimate(stage.open(tally))
        losses.append(abs(tally.loss))
    assert max(losses) > 2


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("structurefirst(bins=2)", [6, 0, 6, 40, 2]),
        ("hierarchicalkd", [6, 0, 6, 40, 2]),
        ("phpartition", [6, 0, 6, 40, 2]),
        ("efpa", [0, 9, 0, 9, 0]),
        ("mwem(rounds=2, passes=2)", [6, 0, 6, 40, 2]),
    ],
)
def test_a_budget_that_is_hardly_used_hides_no_fault(name, counts):
    """Half the noise, or choices without any, need not lose more than ε on these neighbours; their laws tell."""
    faults = {fault: Mutant(inner=parse(name), fault=fault) for fault in ("halved", "greedy", "unpaid")}
    found = {
        fault: check_law(mutant, pair("here", np.array(counts), 3), 1, 600)
        for fault, mutant in faults.items()
    }
    assert found["halved"].sizes > 6
    assert found["greedy"].choices > 6
    assert found["unpaid"].overspent
    assert found["unpaid"].runs == 1


def test_sizes_of_noise_are_as_small_as_they_claim_and_no_smaller():
    """Scales below a step and far above it, and Gaussian noise; one law has hundreds of numbers here."""
    for name, budget in (("laplace", 2), ("laplace", Fraction(1, 1000)), ("gaussian", Budget.of(rho="1/2"))):
        sound = check_law(parse(name), pair("here", COUNTS, 3), budget, 120)
        assert sound.holds, (name, sound)
        assert abs(sound.sizes) > 1e-6
        half = Quieter(inner=parse(name), factor=Fraction(1, 2))
        assert check_law(half, pair("here", COUNTS, 3), budget, 120).sizes > 6


@pytest.mark.parametrize("shape", [(5,), (8,), (3, 3)])
@pytest.mark.parametrize("budget", [1, Budget.of(rho="1/2")])
@pytest.mark.parametrize("name", ["privelet(plain=())", "privelet(plain=(), calibration='paper')"])
def test_cells_rebuilt_from_coefficients_are_seen_through(name, budget, shape):
    """Only cells come back; their noise is that of coefficients, whose losses and sizes are looked at."""
    here = pair("here", (np.arange(np.prod(shape)) * 7 % 13).reshape(shape), 1)
    tally = Tally(stop_early=True)
    with suppress(Finished):
        parse(name).estimate(Stage(here.one, here.other, budget).open(tally))
    assert tally.covered
    assert [noise.size >= here.one.counts.size for noise in tally.noise] == [True]
    assert check_law(parse(name), here, budget, 100).holds
    law = check_law(Mutant(inner=parse(name), fault="quiet"), here, budget, 3000)
    assert not law.holds
    assert law.sizes > 6


def test_cells_that_no_recorded_draws_make_are_not_called_covered(monkeypatch):
    """Noise that went another way than through the gate's source is noticed: the cells do not fit the draws."""
    rebuild = WaveletCells.perturb

    def leaky(self, counts, layout, noise):
        return counts.reshape(layout.shape) + rebuild(self, np.zeros_like(counts), layout, noise) / 2

    monkeypatch.setattr(WaveletCells, "perturb", leaky)
    here, tally = pair("here", COUNTS, 3), Tally(stop_early=True)
    with suppress(Finished):
        parse("privelet(plain=())").estimate(Stage(here.one, here.other, 1).open(tally))
    assert not tally.covered


def test_rare_candidates_raise_no_false_alarm():
    """A sum of log-chances of rare choices is far from normal: beyond six deviations in one of forty such looks."""
    rng = np.random.default_rng(1)
    rare = 1e-4
    chances = np.log([1 - rare, rare])
    bets = np.array(BETS)[:, None]
    each = (bets - 1) * chances - np.log(np.exp(bets * chances).sum(axis=1))[:, None]
    # On average a bet wins nothing.
    assert np.allclose((np.exp(each) * np.exp(chances)).sum(axis=1), 1.0)
    mean = (np.exp(chances) * chances).sum()
    deviation = np.sqrt((np.exp(chances) * (chances - mean) ** 2).sum())
    fell = normal = 0
    for _ in range(400):
        picks = (rng.random(400) < rare).astype(int)
        won = np.cumsum(each[:, picks], axis=1)
        fell += any(abs(_by_bets(won[:, run])) > BEYOND for run in range(39, 400, 9))
        away = np.cumsum(chances[picks] - mean) / (deviation * np.sqrt(np.arange(1, 401)))
        normal += (np.abs(away[39:]) > BEYOND).any()
    assert fell == 0
    assert normal >= 4


@pytest.mark.parametrize("name", ["adaptivetree", "quadtree"])
@pytest.mark.parametrize("fault", ["none", "fine noise halved", "no blur"])
def test_looks_and_the_answers_behind_them_are_held_against_their_laws(name, fault, monkeypatch):
    if fault == "fine noise halved":
        monkeypatch.setattr(
            gradual, "add_noise", lambda exact, sizes, noise: add_noise(exact, sizes / 2, noise)
        )
    if fault == "no blur":
        monkeypatch.setattr(Noise, "blur", lambda self, values, fine, coarse: values)
    here = pair("plane", np.arange(64).reshape(8, 8) % 5, 9)
    law = check_law(parse(name), here, 1, 150 if fault == "none" else 3000)
    assert law.holds == (fault == "none")
    assert (law.sizes > BEYOND) == (fault != "none")
