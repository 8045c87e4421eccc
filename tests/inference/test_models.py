"""Models written as plain data and read again are the same; whatever is no model of these cells is refused."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphist.errors import MechanismError, ReleaseError
from dphist.inference import models
from dphist.inference.estimate import IndependentNoise, PieceNoise
from dphist.inference.fields import Place
from dphist.inference.linear import BucketNoise
from dphist.inference.measured import MeasuredTree
from dphist.inference.predictive.errors import MeasuredCells, PredictiveErrors
from dphist.inference.tables.errors import ResidualNoise
from dphist.inference.tables.residuals import AxisNoise, Measured, TableResiduals
from dphist.inference.trees import TreeNoise
from dphist.model.contrasts import Contrasts
from dphist.model.domain import Domain, Ordinal
from dphist.model.law import NoiseLaw
from dphist.model.workload import Workload

DOMAIN = Domain([Ordinal("x", range(4))])
LAW = NoiseLaw("gaussian", Fraction(7, 3))
TREE = MeasuredTree.of((4,), [-1, 0, 0], [[0], [0], [2]], [[4], [2], [4]], [9, 4, 2], [1, 1, 2])


class Kept:
    """Arrays in a list, as they come back from JSON."""

    def __init__(self):
        self.arrays = []

    def put(self, values):
        self.arrays.append(np.array(values))
        return len(self.arrays) - 1

    def get(self, reference):
        return self.arrays[reference]


def place(shape=(4,), counts=None):
    return Place(shape, DOMAIN if shape == (4,) else None, counts)


def told(model, at=None):
    kept = Kept()
    return json.loads(json.dumps(models.write(model, kept, at or place()))), kept


MODELS: dict[str, Any] = {
    "independent": IndependentNoise(LAW, exact=True),
    "pieces": PieceNoise((4,), np.array([0, 0, 1, 1]), np.array([1.5, 2.0])),
    "tree": TreeNoise(TREE, fixed=True),
    "groups": BucketNoise(np.array([1, 3]), IndependentNoise(LAW)),
    "predictive": PredictiveErrors(MeasuredCells(np.array([3, -1, 0, 8]), LAW), np.arange(4.0)),
}


@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_again_answers_the_same(name):
    model, ask = MODELS[name], Workload.all_ranges(DOMAIN)
    story, kept = told(model)
    again = models.read(story, kept, place())
    assert type(again) is type(model)
    summed = np.linspace(0.0, 9.0, len(ask))
    one, other = (each.interval(ask, summed, 0.9) for each in (model, again))
    assert np.array_equal(one.low, other.low)
    assert np.array_equal(one.high, other.high)
    assert again.words == model.words


def test_a_column_with_contrasts_is_read_again():
    tree = Contrasts(4, *(np.array(each) for each in ([0, 0, 2], [2, 1, 3], [4, 2, 4], [0, 1, 1])))
    measured = Measured((0,), np.array([1.0, 2.0, 3.0]), 2.0, 1.0)
    total = Measured((), np.array(9.0), 2.0, 1.0)
    trees = {0: AxisNoise(tree, np.array([1.0, 2.0]), np.array([1.0, 2.0]))}
    noise = ResidualNoise(TableResiduals((4,), [total, measured], trees))
    story, kept = told(noise)
    again = models.read(story, kept, place())
    ask = Workload.all_ranges(DOMAIN)
    assert np.array_equal(noise.variance(ask), again.variance(ask))


def test_published_cells_are_not_written_twice():
    story, kept = told(MODELS["predictive"], place(counts=np.arange(4.0)))
    assert story["counts"] == "published"
    assert not any(np.array_equal(each, np.arange(4.0)) for each in kept.arrays)
    assert models.read(story, kept, place(counts=np.arange(4.0))).counts.tolist() == [0, 1, 2, 3]


def test_fields_that_are_not_known_are_passed_over():
    story, kept = told(MODELS["tree"])
    story["of next year"] = {"model": "better"}
    assert models.read(story, kept, place()).fixed


def at(story, *path, to):
    for step in path[:-1]:
        story = story[step]
    story[path[-1]] = to


WRONG: dict[str, list[Any]] = {
    "independent": [
        (("law", "size"), "1/0"),
        (("law", "size"), -1.0),
        (("law", "kind"), "cauchy"),
        (("exact",), 1),
    ],
    "pieces": [(("labels",), np.array([0, 0, 1, 2])), (("labels",), np.array([0, 1])), (("shape",), [5])],
    "tree": [
        (("tree", "parent"), np.array([-1, 0, 2])),
        (("tree", "parent"), np.array([-1, -1, 0])),
        (("tree", "high"), np.array([[4], [2], [5]])),
        (("tree", "low"), np.array([[0], [-1], [2]])),
        (("tree", "value"), np.array([1.0])),
        (("tree", "shape"), [5]),
        (("tree", "kind"), "none"),
        (("method",), 3),
    ],
    "groups": [
        (("sizes",), np.array([1, 2])),
        (("sizes",), np.array([0, 4])),
        (("inner",), {"model": "groups"}),
    ],
    "predictive": [(("measured", "cells"), np.arange(3)), (("counts",), "published")],
}


@pytest.mark.parametrize(("name", "path", "wrong"), [(name, *each) for name in WRONG for each in WRONG[name]])
def test_what_fits_no_cells_is_refused(name, path, wrong):
    story, kept = told(MODELS[name])
    at(story, *path, to=kept.put(wrong) if isinstance(wrong, np.ndarray) else wrong)
    with pytest.raises(ReleaseError, match="model"):
        models.read(story, kept, place())


@pytest.mark.parametrize("story", [None, [], {}, {"model": 3}, {"model": "of next year"}, {"model": "tree"}])
def test_what_is_no_model_is_refused(story):
    with pytest.raises(ReleaseError, match="model"):
        models.read(story, Kept(), place())


def test_models_do_not_lie_in_each_other_without_end():
    story, kept = told(IndependentNoise(LAW))
    one = kept.put(np.array([4]))
    for _ in range(100):
        story = {"model": "groups", "sizes": one, "inner": story}
        one = kept.put(np.array([1]))
    with pytest.raises(ReleaseError, match="model"):
        models.read(story, kept, place())


def test_what_a_file_cannot_hold_is_named():
    with pytest.raises(MechanismError, match="Kept is no model that a release can hold"):
        models.write(Kept(), Kept(), place())


def test_the_page_about_the_format_names_every_kind_and_field():
    page = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for name, kind in models.KINDS.items():
        row = next(line for line in rows if f"`{name}`" in line.split("|")[1])
        assert [field for field in kind.fields if f"`{field}`" not in row] == []
    story = small_release_story()
    assert [field for field in story if f"`{field}`" not in page] == []


def small_release_story():
    import dphist
    from dphist.release.writing import laid_out

    release = dphist.publish(
        dphist.Histogram(DOMAIN, np.arange(4)), epsilon=1, mechanism="laplace", unattended=True
    )
    return laid_out(release, 0.95)[0]
