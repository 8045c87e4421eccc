"""Blocking: blocks tile the domain, matching records meet, and Equation 10 is what it says."""

from __future__ import annotations

import numpy as np
import pytest

from dphist import Histogram, publish
from dphist.errors import InputError
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.uses.linkage import Blocking, reduction_ratio

DOMAIN = Domain([Ordinal("age", range(60)), Nominal("school", ["a", "b", "c", "d"])])


def people(count, seed):
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(30, 8, count).astype(int), 0, 59)
    school = np.array(list("abcd"))[rng.integers(0, 4, count)]
    return {"age": age, "school": school}


def released(made, mechanism="dpcube", epsilon=1):
    counts = np.zeros(DOMAIN.shape, dtype=np.int64)
    np.add.at(counts, tuple(DOMAIN.attribute(name).cells(made[name]) for name in DOMAIN.names), 1)
    return publish(Histogram(DOMAIN, counts), epsilon=epsilon, mechanism=mechanism)


@pytest.mark.parametrize("mechanism", ["dpcube", "hierarchicalkd", "adaptivegrid", "laplace"])
def test_records_that_agree_meet(mechanism):
    first, second = people(3000, 1), people(2000, 2)
    # The first 500 of both are the same people.
    for name in first:
        second[name][:500] = first[name][:500]
    blocking = Blocking.from_releases(released(first, mechanism), released(second, mechanism))
    assert blocking.labels.size == DOMAIN.size
    matches = [(i, i) for i in range(500)]
    # Only blocks that look empty are dropped, and those hold few.
    assert blocking.pair_completeness(first, second, matches) > 0.9
    ratio = blocking.reduction_ratio(first, second)
    assert 0.3 < ratio < 1
    assert blocking.estimated_reduction() == pytest.approx(ratio, abs=0.15)


def test_equation_10():
    assert reduction_ratio([0, 0, 1, 2], [0, 1, 1]) == pytest.approx(1 - (2 * 1 + 1 * 2) / 12)
    assert reduction_ratio([-1, -1], [-1, 0]) == 1.0
    assert reduction_ratio([0], [0]) == 0.0
    assert reduction_ratio([], [1]) == 0.0


def test_a_higher_bar_compares_fewer_pairs():
    first, second = released(people(3000, 1)), released(people(2000, 2))
    some, fewer = Blocking.from_releases(first, second), Blocking.from_releases(first, second, least=200.0)
    assert len(fewer) < len(some)
    assert fewer.estimated_reduction() > some.estimated_reduction()


def test_values_out_of_the_domain_meet_nobody():
    blocking = Blocking.from_releases(released(people(3000, 1)), released(people(2000, 2)))
    assert blocking.assign({"age": [30, 300], "school": ["a", "a"]})[1] == -1
    with pytest.raises(InputError, match="no column school"):
        blocking.assign({"age": [30]})


def test_splink_settings_name_the_column():
    blocking = Blocking.from_releases(released(people(3000, 1)), released(people(2000, 2)))
    settings = blocking.splink("block")
    assert settings["link_type"] == "link_only"
    rule = settings["blocking_rules_to_generate_predictions"][0]
    # The rule is SQL over two tables l and r: run it as Splink would.
    import duckdb

    one, other = blocking.assign(people(50, 3)), blocking.assign(people(40, 4))
    with duckdb.connect() as connection:
        for name, blocks in (("left_side", one), ("right_side", other)):
            connection.execute(f"create table {name} (block bigint)")
            connection.executemany(f"insert into {name} values (?)", [[int(b)] for b in blocks])
        pairs = connection.execute(
            f"select count(*) from left_side l join right_side r on {rule}"
        ).fetchone()[0]
    assert 1 - pairs / (50 * 40) == pytest.approx(reduction_ratio(one, other))


def test_domains_must_agree():
    other = publish(Histogram(Domain([Ordinal("x", range(3))]), np.arange(3)), epsilon=1)
    with pytest.raises(InputError, match="same domain"):
        Blocking.from_releases(released(people(10, 1)), other)


@pytest.mark.parametrize("matches", [[(0, 5)], [(5, 0)], [(-1, 0)]])
def test_matches_name_rows_that_there_are(matches):
    made = released(people(500, 1))
    blocking = Blocking.from_releases(made, made)
    with pytest.raises(InputError, match="place of a row"):
        blocking.pair_completeness(people(5, 1), people(5, 2), matches)
