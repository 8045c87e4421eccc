"""The data and the competitors of the lossy compression paper are what they are said to be."""

import numpy as np
import pytest

from dphist_bench import competitors, data


def test_data_are_of_the_papers_kind():
    """Cells, records and empty cells of the paper's Table I, within a tenth."""
    known = {
        "Location": (7_725, 186_471, 4_720),
        "Rochdale": (256, 665, 165),
        "Search Log": (32_768, 335_889, 17_082),
        "NetTrace": (65_536, 25_714, 63_318),
    }
    for name, make in data.paper_003().items():
        counts = make(0)
        cells, records, empty = known[name]
        assert (counts.size, counts.sum()) == (cells, records)
        assert np.sum(counts == 0) == pytest.approx(empty, rel=0.1)


def test_simulated_spa_converges_and_keeps_shape():
    counts = np.arange(12).reshape(3, 4)
    np.testing.assert_allclose(competitors.spa(counts, 1e6, 0), counts, atol=1e-3)
    assert competitors.printed_efpa(counts, 1.0, 0).shape == (3, 4)


def test_printed_efpa_publishes_the_phase():
    counts = np.array([50, 2, 1])
    for seed in range(20):
        turned = np.fft.rfft(competitors.printed_efpa(counts, 1.0, seed))[1] * np.conj(np.fft.rfft(counts)[1])
        assert abs(turned.imag) < 1e-6 * max(1.0, abs(turned))
