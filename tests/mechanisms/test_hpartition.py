import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dphist.kernels.buckets.bisection import LATTICE, run_errors
from dphist.mechanisms.hpartition import PHPartition
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.private.scores.bisections import error_range
from dphist.testing import run
from dphist.testing.gates import as_histogram


def test_a_table_is_read_row_by_row():
    counts = np.repeat([3, 90, 7, 400], 16)
    flat = run(PHPartition(), counts, 1, seed=5)
    table = run(PHPartition(), counts.reshape(8, 8), 1, seed=5)
    np.testing.assert_array_equal(table.counts.reshape(-1), flat.counts)


def asked(counts, epsilon, seed=3):
    noise = Noise(Keystream.for_tests(seed))
    right, transcript = open_gate(as_histogram(counts), epsilon, Unit(), noise=noise)
    return PHPartition().estimate(right), list(transcript)


def test_every_depth_of_cuts_costs_the_same():
    _, entries = asked(np.repeat([3, 900, 40, 7000], 4), 1000)
    cuts = [entry.epsilon for entry in entries if entry.question["ask"] == "Bisections"]
    assert cuts == [Fraction(1000, 4 * 4)] * 4


def test_what_no_cut_had_a_use_for_measures_the_totals_once_more():
    runs = [asked(np.full(4, 9), 1, seed) for seed in range(40)]
    # Four cells that are left whole at the first of two depths, which one run in four decides.
    settled = [run for run in runs if sum(entry.verb == "measure" for entry in run[1]) == 2]
    assert settled
    for estimate, entries in settled:
        spent = [entry.epsilon for entry in entries if entry.verb == "measure"]
        assert spent == [Fraction(1, 2), Fraction(1, 8)]
        scale = math.sqrt(sum(float(each) ** 2 for each in spent)) ** -1
        np.testing.assert_allclose(estimate.errors.scales, scale)


# ---- the algorithm as printed, part by part from a queue, with every probability written out ---------------


def error(counts, first, last):
    values = np.asarray(counts, dtype=np.int64)
    return int(run_errors(values, np.array([first]), np.array([last]))[0]) / 2**LATTICE


def softmax(scores):
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    return [weight / sum(weights) for weight in weights]


def queue_order(counts, epsilon):
    """Probability of every (sequence of draws, kept configuration), by the paper's queue.

    Saved configurations are a set, so a "no split" draw, which changes nothing, adds none.
    """
    n = len(counts)
    depth = max(1, int(math.log2(n)))
    outcomes: dict[Any, Any] = {}
    price = 2 / epsilon

    def walk(queue, saved, draws, probability):
        open_parts = [i for i, part in enumerate(queue) if not part[3]]
        if not open_parts:
            budget = epsilon / 4 / (error_range(n) / 2**LATTICE)
            # One more than the paper's: every cell by itself.
            offered = [*saved, [(i, i + 1) for i in range(n)]]
            scores = [-budget * (sum(error(counts, *run) for run in c) + price * len(c)) for c in offered]
            for configuration, chance in zip(offered, softmax(scores), strict=True):
                key = (draws, tuple(sorted(configuration)))
                outcomes[key] = outcomes.get(key, 0.0) + probability * chance
            return
        i = open_parts[0]
        first, last, deep, _ = queue[i]
        # All parts of one depth share one public range, that of the largest.
        same_depth = [b - a for a, b, d, leaf in queue if d == deep and not leaf] + [
            size for d, size in draws_sizes(draws) if d == deep
        ]
        budget = epsilon / 4 / depth / (error_range(max(same_depth)) / 2**LATTICE)
        errors = [error(counts, first, last)] + [
            error(counts, first, cut) + error(counts, cut, last) + price for cut in range(first + 1, last)
        ]
        for choice, chance in enumerate(softmax([-budget * e for e in errors])):
            rest = [*queue[:i], *queue[i + 1 :]]
            if choice == 0:
                walk(
                    [*rest, (first, last, deep, True)],
                    saved,
                    (*draws, (deep, last - first, 0)),
                    probability * chance,
                )
                continue
            cut = first + choice
            for a, b in ((first, cut), (cut, last)):
                rest.append((a, b, deep + 1, b - a == 1 or deep + 1 >= depth))
            configuration = [(a, b) for a, b, _, _ in rest]
            walk(rest, [*saved, configuration], (*draws, (deep, last - first, choice)), probability * chance)

    walk([(0, n, 0, n == 1)], [[(0, n)]], (), 1.0)
    return outcomes


def draws_sizes(draws):
    return [(deep, size) for deep, size, _ in draws]


def test_depth_by_depth_equals_queue_order():
    """Partitions drawn by the mechanism against the queue's exact probabilities: χ² with fixed seeds."""
    counts, epsilon, runs = [9, 1, 2, 30, 31], 1.0, 600
    chances: Counter[Any] = Counter()
    for (_, configuration), probability in queue_order(counts, epsilon).items():
        chances[tuple(first for first, _ in configuration)] += probability
    assert sum(chances.values()) == pytest.approx(1)
    seen: Counter[Any] = Counter()
    for seed in range(runs):
        labels = run(PHPartition(), counts, 1, seed=seed).errors.labels  # type: ignore[attr-defined]
        seen[tuple(np.flatnonzero(np.diff(labels, prepend=-1)).tolist())] += 1
    assert set(seen) <= set(chances)
    statistic = sum((seen[key] - runs * p) ** 2 / (runs * p) for key, p in chances.items())
    degrees = len(chances) - 1
    # Six standard deviations of χ²: below one in a million by chance, were the seeds not fixed.
    assert statistic < degrees + 6 * math.sqrt(2 * degrees)


def test_the_structure_costs_at_most_half_the_budget():
    """Exact: no sequence of draws and final choice changes its probability by more than e^(ε/2)."""
    rng = np.random.default_rng(4)
    worst = 0.0
    for trial in range(12):
        n = 4 + trial % 2
        counts = rng.integers(0, [3, 12, 60][trial % 3], n).tolist()
        other = counts.copy()
        other[int(rng.integers(n))] += 1
        here, there = queue_order(counts, 1.0), queue_order(other, 1.0)
        assert here.keys() == there.keys()
        worst = max(worst, max(abs(math.log(here[key] / there[key])) for key in here))
    assert 0.1 < worst <= 0.5
