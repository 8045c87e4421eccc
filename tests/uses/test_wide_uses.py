"""What a release of very many columns is good for: classifiers, linkage, records and what they keep."""

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import dphist
from dphist.uses import Blocking, ReleaseID3
from dphist.uses.classify import weighted_cells

NAMES = tuple(f"q{place}" for place in range(17))
DOMAIN = dphist.Domain(
    [dphist.Ordinal("age", range(20)), *(dphist.Nominal(name, ["a", "b", "c"]) for name in NAMES)]
)


@pytest.fixture(scope="module")
def people():
    draw = np.random.default_rng(8)
    hidden = draw.integers(0, 3, 4_000)
    columns = {
        name: np.array(["a", "b", "c"])[
            np.where(draw.random(4_000) < 0.7, hidden, draw.integers(0, 3, 4_000))
        ]
        for name in NAMES
    }
    return pd.DataFrame({"age": draw.integers(0, 20, 4_000), **columns})


@pytest.fixture(scope="module")
def release(people):
    return dphist.publish(people, DOMAIN, 400, "mixture(classes=12, steps=60)", unattended=True)


def test_trees_and_classifiers_learn_from_it(people, release):
    tree = ReleaseID3("q0", max_depth=2, features=NAMES[1:5]).fit(release)
    commonest = people["q0"].value_counts(normalize=True).max()
    assert tree.score(people, people["q0"]) > commonest + 0.15
    features, classes, weight = weighted_cells(release, "q0")
    assert features.shape == (len(classes), len(NAMES))
    assert weight.sum() == len(classes)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(features, classes, sample_weight=weight)
    places = [DOMAIN.attribute(name).cells(people[name]) for name in DOMAIN.names if name != "q0"]
    right = model.predict(np.stack(places, axis=1)) == people["q0"]
    assert right.mean() > commonest + 0.15


def test_blocks_are_cells_of_a_table_that_both_published(people, release):
    blocks = Blocking.from_releases(release, release)
    assert blocks.domain.names == ("age", blocks.domain.names[1])
    matches = [(row, row) for row in range(0, 4_000, 40)]
    assert blocks.pair_completeness(people, people, matches) > 0.9
    assert blocks.estimated_reduction() > 0.9
    assert abs(blocks.reduction_ratio(people, people) - blocks.estimated_reduction()) < 0.02
    named = Blocking.from_releases(release, release, attributes=["q1", "q2"])
    assert named.domain.names == ("q1", "q2")


def test_records_are_typed(release):
    made = release.records(50)
    assert made["age"].dtype.kind == "i"
    assert set(made["q3"]) <= {"a", "b", "c"}
