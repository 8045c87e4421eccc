"""Bins of many uneven edges, against a search in the whole list."""

from typing import Any

import numpy as np
import pytest

from dphist.kernels import bins
from dphist.kernels.bins import bins_of


def _edges():
    rng = np.random.default_rng(1)
    yield np.sort(rng.uniform(-3, 9, 300))
    yield 10.0 ** np.linspace(-9, 9, 400)
    yield np.concatenate([[-np.inf], np.arange(70.0), [np.inf]])
    yield np.array([0.0, np.nextafter(0, 1), 1.0, 1e308])
    yield np.array([-(2**62), -5, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**62])
    yield np.arange(0, 1000, 7)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("edges", list(_edges()), ids=lambda edges: f"{len(edges)}{edges.dtype.kind}")
def test_every_value_lies_in_its_bin(edges, compiled, monkeypatch):
    if compiled:
        look_up: Any = bins._look_up
        monkeypatch.setattr(bins, "_look_up", look_up.compiled())
    rng = np.random.default_rng(2)
    # The edges themselves, their neighbours, and values between them.
    near = [edges[1:-1], edges[1:-1]]
    if edges.dtype.kind == "f":
        near = [np.nextafter(edges[1:-1], -np.inf), np.nextafter(edges[1:-1], np.inf), edges[1:-1]]
    else:
        near += [edges[1:-1] - 1, edges[1:-1] + 1]
    values = np.concatenate([rng.permutation(each) for each in near])
    values = values[(values >= edges[0]) & (values < edges[-1])]
    found = bins_of(values, edges)
    assert (edges[found] <= values).all()
    assert (values < edges[found + 1]).all()
    if edges.dtype.kind == "f":
        assert (bins_of(np.array([np.nan, -np.inf, np.inf]), edges) < len(edges) - 1).all()
    assert bins_of(edges[-1:], edges).tolist() == [len(edges) - 2]
