"""The file speaks for itself: typed labels, an interval for every cell, and words, for readers without dphist."""

import copy
import datetime as dt
import json
import pickle

import numpy as np
import pyarrow.parquet as pq
import pytest

import dphist
from dphist.errors import InputError, MechanismError, QueryError, VerificationError
from dphist.release.held import stamped

DOMAIN = dphist.Domain(
    [
        dphist.Ordinal("age", range(20, 24), other=True),
        dphist.Ordinal("income", edges=[0, 10_000, 25_000]),
        dphist.Ordinal("month", dates=("2024-01-01", "2024-03-01", "1mo")),
        dphist.Nominal("place", {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d"]}}),
        dphist.Nominal("smokes", [False, True]),
    ]
)
ABOUT = {
    "publisher": "City of Example",
    "licence": "CC-BY-4.0",
    "contact": "data@example.org",
    "version": "2",
}


@pytest.fixture(scope="module")
def release():
    counts = np.random.default_rng(5).integers(0, 90, DOMAIN.shape)
    return dphist.publish(dphist.Histogram(DOMAIN, counts), epsilon=1, mechanism="tree", about=ABOUT)


@pytest.fixture(scope="module")
def path(release, tmp_path_factory):
    made = tmp_path_factory.mktemp("file") / "out.parquet"
    release.save(made)
    return made


def test_labels_are_numbers_days_and_truth_values(path):
    table = pq.read_table(path)
    kinds = {field.name: str(getattr(field.type, "value_type", field.type)) for field in table.schema}
    assert kinds == {
        "age": "int64", "income": "string", "income_low": "int64", "income_high": "int64", "month": "string",
        "month_low": "date32[day]", "month_high": "date32[day]", "place": "string", "place_1": "string",
        "place_2": "string", "smokes": "bool", "estimate": "double", "low": "double", "high": "double",
    }  # fmt: skip
    first, last = table.slice(0, 1).to_pylist()[0], table.slice(table.num_rows - 1).to_pylist()[0]
    assert (first["age"], last["age"]) == (20, None)
    assert (last["income_low"], last["income_high"], last["income"]) == (10_000, 25_000, "[10000, 25000]")
    assert (last["month_low"], last["month_high"]) == (dt.date(2024, 2, 1), dt.date(2024, 3, 1))
    assert (last["place"], last["place_1"], last["place_2"], last["smokes"]) == ("d", "south", "hills", True)
    assert (first["place"], first["place_1"], first["place_2"]) == ("a", "north", "a")


def test_the_bounds_are_those_of_the_release_and_need_no_replay(release, path):
    answers = release.answer(dphist.Workload.cells(DOMAIN))
    frame = dphist.load(path).to_pandas()
    assert np.allclose(frame["low"], answers.low)
    assert np.allclose(frame["high"], answers.high)
    again = dphist.load(path)
    low, high = again.bounds()
    assert "_estimate" not in again.__dict__
    assert (low <= high).all()
    assert not np.allclose(again.bounds(confidence=0.5)[1], high)
    for confidence in (0, 1, "0.95", True):
        with pytest.raises(QueryError, match="confidence"):
            release.save(path.parent / "never.parquet", confidence=confidence)


def test_a_release_that_was_read_can_be_copied_and_sent_to_another_process(path):
    first = dphist.load(path)
    for again in (pickle.loads(pickle.dumps(first)), copy.deepcopy(first)):  # noqa: S301
        assert np.array_equal(again.bounds()[1], first.bounds()[1])
        again.verify()


def test_a_reader_without_dphist_finds_value_bounds_and_guarantee(release, path):
    import duckdb
    import pandas as pd

    found = duckdb.sql(
        f"select estimate, low, high from '{path}' where age = 21 and income_low >= 10000 "
        "and month_low = date '2024-02-01' and place_1 = 'south' and smokes order by place"
    ).fetchall()
    counts = release.counts[1, 1, 1, 2:, 1]
    assert [row[0] for row in found] == counts.tolist()
    assert all(low <= high for _, low, high in found)
    told = dict(duckdb.sql(f"select key, value from parquet_kv_metadata('{path}')").fetchall())
    said = {key.decode(): value.decode() for key, value in told.items() if key != b"ARROW:schema"}
    assert said["guarantee"] == "1-differential privacy for one row, which may be added or removed"
    assert said["confidence"] == "0.95"
    assert said["publisher"] == "City of Example"
    assert dt.date.fromisoformat(said["created"])
    assert "income_low: from (included)" in said["columns"]
    frame = pd.read_parquet(path)
    assert frame["month_low"].iloc[0] == dt.date(2024, 1, 1)
    assert frame["age"].dropna().unique().tolist() == [20, 21, 22, 23]


@pytest.mark.parametrize("estimator", ["plain", "weighed"])
def test_the_file_has_the_measured_tables_and_what_they_do_not_say_is_guessed_when_asked(tmp_path, estimator):
    sizes = {"x": 9, "y": 2, "z": 4}
    domain = dphist.Domain([dphist.Ordinal(name, range(size)) for name, size in sizes.items()])
    counts = np.random.default_rng(1).poisson(7, domain.shape)
    release = dphist.publish(
        dphist.Histogram(domain, counts), epsilon=1, mechanism=dphist.mechanisms.Marginals(estimator=estimator),
        workload=dphist.Workload.marginals(domain, [["x", "y"], ["z"]]),
    )  # fmt: skip
    release.save(tmp_path / "out.parquet")
    table = pq.read_table(tmp_path / "out.parquet").to_pandas()
    assert table["table"].value_counts(sort=False).to_dict() == {
        "total": 1,
        "x": 9,
        "y": 2,
        "z": 4,
        "x, y": 18,
    }
    words = pq.read_schema(tmp_path / "out.parquet").metadata[b"columns"]
    assert words.startswith(b"table: which table the row is of")
    pairs = table[table["table"] == "x, y"]
    assert pairs["z"].isna().all()
    again = dphist.load(tmp_path / "out.parquet")
    again.verify()
    for each in (release, again):
        found = each.project("x", "y")
        assert found.guessed is None
        for side, name in ((found.low, "low"), (found.high, "high")):
            assert np.array_equal(side.reshape(-1), pairs[name])
        if estimator == "plain":
            np.testing.assert_allclose(found.counts.reshape(-1), pairs["estimate"], rtol=1e-12)
        # What no table has is a guess between bounds, and all of it adds up to what was measured.
        cells = each.answer(dphist.Workload.cells(domain))
        assert not cells.measured.any()
        assert (cells.low <= cells.value).all()
        assert (cells.value <= cells.high).all()
        np.testing.assert_allclose(cells.value, each.counts.reshape(-1), atol=1e-6)
        np.testing.assert_allclose(each.counts.sum(axis=2).reshape(-1), pairs["estimate"], atol=0.01)
        assert each.counts.shape == domain.shape
        assert len(each.records(50)) == 50
    assert np.array_equal(release.counts, again.counts)


def test_a_product_that_was_not_measured_is_rounded_all_the_same(tmp_path):
    domain = dphist.Domain([dphist.Ordinal("x", range(9)), dphist.Nominal("y", ["a", "b"])])
    release = dphist.publish(
        dphist.Histogram(domain, np.full((9, 2), 7)), epsilon=1, mechanism="marginals",
        workload=dphist.Workload.marginals(domain, [["x"], ["y"]]),
    )  # fmt: skip
    release.polished(integer=True).save(tmp_path / "out.parquet")
    again = dphist.load(tmp_path / "out.parquet")
    again.verify()
    table = pq.read_table(tmp_path / "out.parquet")
    assert len(table) == 18
    assert np.array_equal(again.counts.reshape(-1), np.rint(table["estimate"].to_numpy()))
    assert table["low"].null_count == table["high"].null_count == 0
    assert b"the estimate is a guess" in table.schema.metadata[b"intervals"]
    answers = again.answer(dphist.Workload.cells(domain))
    assert not answers.measured.any()
    assert np.array_equal(answers.high, table["high"].to_numpy())


def test_frames_have_the_columns_of_the_file(release, path):
    names = pq.read_schema(path).names
    pandas, array = release.to_pandas(), release.to_xarray()
    assert list(pandas.columns) == release.to_arrow().column_names == names
    assert pandas["age"].iloc[0] == 20
    assert pandas["age"].isna().sum() == DOMAIN.size // 5
    assert (
        float(array.sel(age=22, month="2024-02", place="c", smokes=True, income="[0, 10000)"))
        == (release.counts[2, 0, 1, 2, 1])
    )
    assert array["income_high"].to_numpy().tolist() == [10_000, 25_000]
    records = release.records(50)
    assert records["age"].dropna().between(20, 23).all()
    assert "estimate" not in records
    assert not {"low", "high"} & set(release.to_pandas(confidence=None).columns)


def test_columns_get_out_of_the_way_of_attributes(tmp_path):
    names = ["low", "income", "income_low", "estimate", "high"]
    domain = dphist.Domain([dphist.Ordinal(name, edges=[0, 1, 2]) for name in names])
    release = dphist.publish(
        dphist.Histogram(domain, np.ones(domain.shape, int)), epsilon=1, mechanism="laplace"
    )
    release.save(tmp_path / "out.parquet")
    again = dphist.load(tmp_path / "out.parquet")
    again.verify()
    columns = list(again.to_pandas().columns)
    assert len(set(columns)) == len(columns) == 5 * 3 + 3
    assert np.array_equal(again.counts, release.counts)
    assert columns == pq.read_schema(tmp_path / "out.parquet").names


def test_published_cells_of_a_sparse_release_have_bounds_that_allow_for_having_been_published():
    # Cells that hold a few records or none and passed by chance, and cells that hold many.
    domain = dphist.Domain([dphist.Ordinal("x", range(30_000))])
    truth = np.zeros(30_000, dtype=np.int64)
    truth[:9000] = np.repeat([1, 3, 5, 8, 12, 30], 1500)
    release = dphist.publish(
        dphist.Histogram(domain, truth), epsilon="1/2", mechanism="sparselaplace(threshold=5)"
    )
    low, high = release.bounds()
    held = truth[release.cells.flat]  # type: ignore[union-attr]
    inside = (low <= held) & (held <= high)
    assert len(held) > 3000
    for value in np.unique(held):
        here = inside[held == value]
        assert here.mean() > 0.95 - 4 * np.sqrt(0.95 * 0.05 / here.size), value
    plain = np.maximum(release.cells.numbers - (high - release.cells.numbers), 0)
    assert (plain[held == 0] > 0).mean() > 0.2  # as if they had been asked for beforehand: wrong


def test_what_the_custodian_says_is_checked_and_kept(release, tmp_path):
    assert release.about.publisher == "City of Example"
    assert release.polished(integer=True).about == release.about
    release.save(tmp_path / "out.parquet", about={"title": "Smoking", "created": dt.date(2024, 5, 1)})
    again = dphist.load(tmp_path / "out.parquet").about
    assert (again.title, again.created, again.publisher) == ("Smoking", "2024-05-01", "City of Example")
    for wrong in (
        {"colour": "red"},
        {"title": 3},
        {"created": "yesterday"},
        {"title": "a" * 3000},
        "City",
        {"title": "\x00"},
    ):
        with pytest.raises(InputError, match="about"):
            release.with_about(wrong)


def test_a_release_by_a_mechanism_that_is_not_here_is_asked_as_ever(release, tmp_path, path):
    from dphist.release.guarantee import ForeignMechanism

    table = pq.read_table(path)
    story = json.loads(table.schema.metadata[b"dphist"])
    story["mechanism"] = {"name": "elsewhere:Fancy", "options": {}}
    pq.write_table(
        table.replace_schema_metadata(
            stamped(table.schema.metadata | {b"dphist": json.dumps(story).encode()})
        ),
        tmp_path / "out.parquet",
    )
    foreign = dphist.load(tmp_path / "out.parquet")
    assert isinstance(foreign.mechanism, ForeignMechanism)
    with pytest.raises(
        MechanismError, match="which cannot be made here: there is no mechanism 'elsewhere:Fancy'"
    ):
        foreign.verify()
    assert np.array_equal(foreign.bounds()[0], release.bounds()[0])
    # And its model, for any other confidence.
    assert np.array_equal(foreign.bounds(confidence=0.5)[0], release.bounds(confidence=0.5)[0])


def test_who_wrote_a_file_that_does_not_verify_is_named(release, tmp_path, monkeypatch):
    release.save(tmp_path / "out.parquet")
    again = dphist.load(tmp_path / "out.parquet")
    monkeypatch.setattr("dphist.release.verifying.__version__", "9.0.0")
    again.verify()
    monkeypatch.setattr(type(again.cells), "same", lambda *_, **__: False)
    with pytest.raises(
        VerificationError, match=r"other counts .* dphist 0\.1\.0: verify it with that version"
    ):
        again.verify()
