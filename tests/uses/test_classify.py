"""Classifiers from a release: ID3 on a histogram, any scikit-learn classifier, and the interactive competitor."""

from __future__ import annotations

from datetime import date
from fractions import Fraction

import numpy as np
import pytest

from dphist import Histogram, Ledger, publish
from dphist.errors import (
    BudgetExhausted,
    EpsilonError,
    InputError,
    MechanismError,
    NotPrivate,
    SourceError,
    VerificationError,
)
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.private.gate import open_gate
from dphist.private.noise import Keystream, Noise
from dphist.release.guarantee import Guarantee
from dphist.uses.classify import ReleaseID3, column, gain, weighted_cells
from dphist.uses.private_id3 import private_id3

DOMAIN = Domain(
    [Nominal("work", ["x", "y", "z"]), Ordinal("band", range(4)), Nominal("class", ["no", "yes"])]
)


def records(count=4000, seed=0):
    """The class follows from work and, within one kind of it, from the band; one in twenty is wrong."""
    rng = np.random.default_rng(seed)
    work = rng.integers(0, 3, count)
    band = rng.integers(0, 4, count)
    yes = np.where(work == 0, False, np.where(work == 1, True, band >= 2)) ^ (rng.random(count) < 0.05)
    return {"work": np.array(["x", "y", "z"])[work], "band": band, "class": np.where(yes, "yes", "no")}


def histogram(made):
    cells = [DOMAIN.attribute(name).cells(made[name]) for name in DOMAIN.names]
    counts = np.zeros(DOMAIN.shape, dtype=np.int64)
    np.add.at(counts, tuple(cells), 1)
    return Histogram(DOMAIN, counts)


def test_id3_finds_the_rule_from_a_release():
    train, test = records(), records(seed=1)
    release = publish(histogram(train), epsilon=1, mechanism="dpcube")
    model = ReleaseID3("class").fit(release)
    assert model.tree_.attribute == "work"
    assert model.score(test, test["class"]) > 0.93
    shares = model.predict_proba(test)
    assert shares.shape == (4000, 2)
    assert np.allclose(shares.sum(axis=1), 1)


def test_gain_is_information_in_bits():
    # Quinlan's weather: outlook against play has a gain of 0.247 bits.
    assert gain(np.array([[2.0, 3.0], [4.0, 0.0], [3.0, 2.0]])) == pytest.approx(0.2467, abs=1e-4)


def test_values_never_seen_stay_at_the_node_above():
    model = ReleaseID3("class").fit(publish(histogram(records()), epsilon=10))
    guessed = model.predict({"work": ["nobody", "y"], "band": [1, 99]})
    assert guessed.tolist() == [model.classes_[np.argmax(model.tree_.weights)], "yes"]


def test_options():
    model = ReleaseID3("class", features=["band"], max_depth=0)
    assert model.fit_on_public_records(histogram(records())).tree_.children == {}
    with pytest.raises(InputError, match="features"):
        ReleaseID3("class", features=["class"]).fit_on_public_records(histogram(records()))
    with pytest.raises(InputError, match="column"):
        column({"a": [1]}, "b")


def test_any_classifier_learns_from_weighted_cells():
    from sklearn.tree import DecisionTreeClassifier

    train, test = records(), records(seed=1)
    release = publish(histogram(train), epsilon=1, mechanism="dpcube")
    X, y, weight = weighted_cells(release, "class")
    assert X.shape[1] == 2
    assert weight.min() > 0
    assert weight.sum() == pytest.approx(np.maximum(release.counts, 0).sum())
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y, sample_weight=weight)
    places = [DOMAIN.attribute(name).cells(test[name]) for name in DOMAIN.names if name != "class"]
    assert np.mean(model.predict(np.stack(places, axis=1)) == test["class"]) > 0.93
    assert set(y) == {"no", "yes"}


def test_interactive_id3_learns_with_enough_budget():
    train, test = records(), records(seed=1)
    model = private_id3(histogram(train), "class", 20, depth=2, noise=Noise(Keystream.for_tests(1)))
    assert model.score(test, test["class"]) > 0.9
    with pytest.raises(MechanismError, match="depth"):
        private_id3(histogram(train), "class", 1, depth=0)
    with pytest.raises(SourceError, match="ids"):
        private_id3(histogram(train), "class", 1, unit=Unit(rows=2, id="user"))


def test_interactive_id3_is_paid_for_and_can_be_replayed(tmp_path):
    made = histogram(records(400))
    with Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1, unit=Unit(rows=2))
        model = private_id3(made, "class", "1/2", unit=Unit(rows=2), ledger=book, dataset="people")
        (entry,) = book.entries("people")
        assert (entry.epsilon, entry.status, model.receipt_) == (
            Fraction(1, 2),
            "opened",
            ("people", entry.id, entry.hash),
        )
        assert model.guarantee_ == Guarantee(Fraction(1, 2), Unit(rows=2))
        assert model.transcript_.spent() == Fraction(1, 2)
        model.verify()
        with pytest.raises(BudgetExhausted):
            private_id3(made, "class", "3/4", unit=Unit(rows=2), ledger=book, dataset="people")
        with pytest.raises(EpsilonError, match="Nothing was spent"):
            private_id3(made, "class", "1e-17", ledger=book, dataset="people")
        assert len(book.entries("people")) == 1
        model.tree_.weights[0] += 1
        with pytest.raises(VerificationError, match="another tree"):
            model.verify()
    with pytest.raises(InputError, match="belong together"):
        private_id3(made, "class", 1, dataset="people")


def test_true_counts_are_never_taken_for_a_release():
    made = histogram(records(50))
    for learn in (lambda: ReleaseID3("class").fit(made), lambda: weighted_cells(made, "class")):
        with pytest.raises(NotPrivate, match="publish first"):
            learn()


@pytest.mark.parametrize(
    ("target", "truth"),
    [
        (Nominal("y", [False, True]), [False, True]),
        (Nominal("y", [False, True]), np.array([False, True])),
        (Nominal("y", [0, 1]), [0.0, 1.0]),
        (Nominal("y", ["no", "yes"]), ["no", "yes"]),
        (Ordinal("y", edges=[0, 10, 20]), [5, 20]),
        (Ordinal("y", edges=[0, 10, 20]), ["[0, 10)", "[10, 20]"]),
    ],
)
def test_classes_are_named_by_labels_or_in_their_own_values(target, truth):
    """A tree that guessed every one of them right had the score of one that guessed none."""
    domain = Domain([Ordinal("x", range(2)), target])
    counts = Histogram(domain, np.array([[500, 0], [0, 500]]))
    tree = ReleaseID3("y").fit(publish(counts, epsilon=10, mechanism="laplace"))
    assert tree.score({"x": [0, 1]}, truth) == 1.0
    assert tree.score({"x": [0, 1]}, truth[::-1]) == 0.0
    with pytest.raises(InputError, match="a column of what the tree asks for: x"):
        tree.predict({"z": [1, 2]})


@pytest.mark.parametrize(
    ("target", "classes"),
    [
        (Nominal("y", [False, True]), [False, True]),
        (Nominal("y", [0, 1]), [0, 1]),
        (Ordinal("y", range(2010, 2014, 2), other=True), [2010, 2012, "other"]),
        (Ordinal("y", dates=("2024-02-28", "2024-03-01")), [date(2024, 2, 28), date(2024, 2, 29)]),
        (Nominal("y", ["no", "yes"]), ["no", "yes"]),
    ],
)
def test_guesses_are_in_the_values_that_records_have(target, classes):
    """No guess was equal to the column that it is a guess of."""
    domain = Domain([Ordinal("x", range(len(classes))), target])
    release = publish(
        Histogram(domain, 500 * np.eye(len(classes), dtype=int)), epsilon=10, mechanism="laplace"
    )
    tree, x = ReleaseID3("y").fit(release), list(range(len(classes)))
    assert tree.predict({"x": x}).tolist() == classes
    assert bool((tree.predict({"x": x}) == np.array(classes, dtype=object)).all())
    assert tree.score({"x": x}, classes[:2] + [1999] * (len(classes) - 2)) == 1.0
    assert weighted_cells(release, "y")[1].tolist()[0] == classes[0]


def test_interactive_id3_spends_exactly_its_budget(monkeypatch):
    seen = []

    def watch(*arguments, **options):
        right, transcript = open_gate(*arguments, **options)
        seen.append(transcript)
        return right, transcript

    monkeypatch.setattr("dphist.uses.private_id3.open_gate", watch)
    private_id3(histogram(records()), "class", "0.7", unit=Unit())
    assert seen[0].spent() == Fraction(7, 10)


@pytest.mark.audit
@pytest.mark.slow
def test_interactive_id3_loses_no_more_than_it_says():
    # One record more or less, two levels of choices and noisy leaves: outcomes of the first choice, by counting.
    base = np.zeros(DOMAIN.shape, dtype=np.int64)
    base[0, 0, 0], base[1, 1, 1] = 1, 1
    more = base.copy()
    more[2, 3, 1] += 1
    runs, share = 1000, 1 / 3

    def first_choices(counts, start):
        names = []
        for seed in range(runs):
            noise = Noise(Keystream.for_tests(start + seed))
            model = private_id3(Histogram(DOMAIN, counts), "class", 1, depth=2, noise=noise)
            names.append(model.tree_.attribute == "work")
        return np.mean(names)

    p, q = first_choices(base, 0), first_choices(more, 10**6)
    # Six deviations of the estimate of log p/q; seeds are fixed.
    slack = 6 * np.sqrt(2 / runs)
    assert abs(np.log(p / q)) <= share + slack
