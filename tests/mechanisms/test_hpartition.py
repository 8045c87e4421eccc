import math
from fractions import Fraction

import numpy as np

from dphist.mechanisms.hpartition import PHPartition
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
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
