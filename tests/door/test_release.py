import json
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dphist.release.writing as release_file
from dphist.errors import InputError, NotPrivate, OutputError, QueryError, ReleaseError, VerificationError
from dphist.mechanisms.baseline import Laplace, Uniform
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.noise import Keystream, Noise
from dphist.publishing.door import publish
from dphist.publishing.making import release_of
from dphist.release import DenseCells, load
from dphist.release.cells.cells import alike
from dphist.release.held import stamped

DOMAIN = Domain(
    [
        Ordinal("age", range(20, 30)),
        Nominal("place", {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e"]}}, other=True),
        Ordinal("income", edges=[0, 10, 100]),
    ]
)
HISTOGRAM = Histogram(DOMAIN, (np.arange(120) * 37 % 41).reshape(DOMAIN.shape))


@pytest.fixture
def release():
    return publish(HISTOGRAM, epsilon="1/2", mechanism="laplace")


def test_answers_are_sums_of_the_published_counts(release):
    assert release.answer().value == release.counts.sum()
    some = release.answer(where={"age": (22, 24), "place": "south"})
    assert some.value == release.counts[2:5, 2:5].sum()
    assert some.low <= some.value <= some.high
    apart = release.answer(where={"place": ["a", "d"]})
    assert apart.value == pytest.approx(release.counts[:, [0, 3]].sum())
    workload = Workload.random(DOMAIN, 50, seed=4)
    many = release.answer(workload)
    assert many.value == pytest.approx(workload.answer(release.counts))
    assert many[3].value == many.value[3]
    assert "exact" in some.method


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, float("nan")])
def test_bad_confidence(release, confidence):
    with pytest.raises(QueryError, match="confidence"):
        release.answer(confidence=confidence)


def test_questions_that_make_no_sense_are_named(release):
    with pytest.raises(QueryError, match="weight"):
        release.answer(where={"weight": 3})
    with pytest.raises(QueryError, match="place"):
        release.answer(where={"place": "nowhere"})
    with pytest.raises(QueryError, match="not both"):
        release.answer(Workload.cells(DOMAIN), where={})
    with pytest.raises(QueryError, match="another domain"):
        release.answer(Workload.cells(Domain([Ordinal("x", range(3))])))


def test_projection_is_the_marginal_in_the_order_asked(release):
    table = release.project(["income", "age"])
    assert table.counts == pytest.approx(release.counts.sum(axis=1).T)
    assert table.domain.names == ("income", "age")
    assert list(table.to_pandas().columns) == [
        "income", "income_low", "income_high", "age", "estimate", "low", "high",
    ]  # fmt: skip
    assert release.project("age").counts.shape == (10,)


def test_verify_accepts_what_was_published_and_nothing_else(release):
    release.verify()
    altered = release.counts.copy()
    altered[0, 0, 0] += 1
    forged = _with(release, cells=DenseCells(altered))
    # Also after an answer that took the counts as they are.
    forged.answer("age between 25 and 29")
    with pytest.raises(VerificationError, match="other counts"):
        forged.verify()
    with pytest.raises(VerificationError):
        _with(release, mechanism=Uniform()).verify()
    with pytest.raises(VerificationError, match="more than"):
        _with(release, guarantee=type(release.guarantee)(Fraction(1, 4), Unit())).verify()


def test_verify_lets_pass_what_another_processor_rounds_otherwise():
    fitted = publish(HISTOGRAM, epsilon="1/2", mechanism="marginals")
    assert not np.array_equal(fitted.counts, np.rint(fitted.counts))
    fitted.verify(exact=True)
    one, other = (_with(fitted, cells=DenseCells(fitted.counts * (1.0 + part))) for part in (1e-13, 1e-7))
    one.verify()
    with pytest.raises(VerificationError, match="other counts"):
        one.verify(exact=True)
    with pytest.raises(VerificationError, match="other counts"):
        other.verify()
    # Whole numbers have no last digits.
    whole = np.array([[1e12, 3.0]])
    assert not alike(whole, whole + 1.0)
    assert not alike(whole, whole[:, :1])


def test_saved_and_loaded_is_the_same_release(release, tmp_path):
    path = tmp_path / "out.parquet"
    release.save(path)
    again = load(path)
    again.verify()
    assert np.array_equal(again.counts, release.counts)
    assert (again.domain, again.guarantee, again.mechanism) == (DOMAIN, release.guarantee, Laplace())
    assert again.answer(where={"age": 21}) == release.answer(where={"age": 21})
    assert [child.name for child in tmp_path.iterdir()] == ["out.parquet"]


def test_the_file_holds_no_true_count(tmp_path):
    odd = Histogram(Domain([Ordinal("x", range(3))]), np.array([918273645, 0, 564738291]))
    path = tmp_path / "out.parquet"
    # Each cell keeps its true count with a chance of one in two million.
    release = publish(odd, epsilon="1/1000000", mechanism="laplace")
    release.save(path)
    import pyarrow.parquet as pq

    story = pq.read_schema(path).metadata[b"dphist"].decode()
    assert "918273645" not in story
    assert "564738291" not in story
    assert str(918273645 + 564738291) not in story
    assert not np.isin(release.counts, odd.counts).any()


def test_polishing_costs_nothing_keeps_the_total_and_still_verifies(release, tmp_path):
    nice = release.polished(nonnegative=True, integer=True)
    assert (nice.counts >= 0).all()
    assert (nice.counts == np.round(nice.counts)).all()
    assert nice.counts.sum() == pytest.approx(release.counts.sum(), abs=0.51)
    nice.verify()
    nice.save(tmp_path / "nice.parquet")
    again = load(tmp_path / "nice.parquet")
    again.verify()
    # The interval stands on the estimate before polishing.
    question = {"age": 21, "place": "a"}
    assert (again.answer(where=question).low, again.answer(where=question).high) == (
        release.answer(where=question).low,
        release.answer(where=question).high,
    )
    assert release.polished(total=1000).counts.sum() == pytest.approx(1000)
    for wrong in (float("nan"), float("inf"), -5, "many"):
        with pytest.raises((QueryError, InputError), match="total"):
            release.polished(total=wrong)


def test_whoever_writes_into_bounds_changes_nobody_elses(release):
    low, _ = release.bounds()
    with pytest.raises(ValueError, match="read-only"):
        low += 1


def test_synthetic_records_follow_the_counts():
    release = publish(HISTOGRAM, epsilon=1000, mechanism="laplace")
    records = release.records()
    assert len(records) == round(release.counts.sum())
    found = records.groupby("age").size().to_numpy()
    assert np.abs(found - np.maximum(release.counts, 0).sum(axis=(1, 2))).max() <= 1
    assert len(release.records(10)) == 10
    assert release.records(10, seed=1).equals(release.records(10, seed=1))
    with pytest.raises(QueryError, match="count"):
        release.records(-1)


def test_seeded_releases_refuse_to_be_saved(tmp_path):
    noise = Noise(Keystream.for_tests(1))
    seeded = release_of(HISTOGRAM, Fraction(1), Laplace(), Unit(), None, noise=noise)
    for each in (seeded, seeded.polished(integer=True)):
        with pytest.raises(NotPrivate, match="test seed"):
            each.save(tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["paid.csv", "paid.TSV", "paid.xlsx"])
def test_a_release_is_not_written_under_the_name_of_another_kind_of_file(release, tmp_path, name):
    (tmp_path / name).write_text("kept")
    with pytest.raises(InputError, match=r"a release is a Parquet file.*paid\.parquet"):
        release.save(tmp_path / name)
    assert (tmp_path / name).read_text() == "kept"


def test_a_page_is_not_written_under_the_name_of_another_kind_of_file(release, tmp_path):
    with pytest.raises(InputError, match=r"a report is a page.*r\.html"):
        release.report(tmp_path / "r.pdf")
    assert list(tmp_path.iterdir()) == []


def test_damaged_files_are_refused_with_a_reason(release, tmp_path):
    path = tmp_path / "out.parquet"
    release.save(path)
    whole = path.read_bytes()
    with pytest.raises(ReleaseError, match="there is no file"):
        load(tmp_path / "missing.parquet")
    for cut in (0, 3, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(ReleaseError, match=r"truncated|damaged"):
            load(path)
    release.to_pandas().astype(str).to_parquet(path)
    with pytest.raises(ReleaseError, match="not a dphist release"):
        load(path)


@pytest.mark.parametrize(("version", "readable"), [("1.0", True), ("1.7", True), ("2.0", False), (1, False)])
def test_what_a_newer_writer_adds_is_passed_over_and_another_format_is_refused(
    release, tmp_path, version, readable
):
    import pyarrow.parquet as pq

    path = tmp_path / "new.parquet"
    release.save(path)
    table = pq.read_table(path)
    told = dict(table.schema.metadata)
    story = json.loads(told[b"dphist"]) | {"format": version, "of next year": {"a": [1]}}
    story["domain"]["colour"] = story["guarantee"]["colour"] = story["model"]["colour"] = "red"
    told |= {b"dphist": json.dumps(story).encode(), b"doi of next year": b"10.1/1"}
    table = table.append_column("spare", pa.nulls(len(table)))
    pq.write_table(table.replace_schema_metadata(stamped(told)), path)
    if not readable:
        with pytest.raises(ReleaseError, match="newer"):
            load(path)
        return
    again = load(path)
    assert repr(again.answer("age between 20 and 40")) == repr(release.answer("age between 20 and 40"))
    # Nobody has to believe what stands beside a release.
    with pytest.raises(VerificationError):
        again.verify()


def test_a_damaged_footer_is_told_by_its_fingerprint(release, tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "out.parquet"
    release.save(path)
    table = pq.read_table(path)
    told = dict(table.schema.metadata)
    # A bit of a number, and the text is still a description.
    told[b"dphist"] = told[b"dphist"].replace(b'"epsilon": "1/2"', b'"epsilon": "1/3"')
    assert told != table.schema.metadata
    pq.write_table(table.replace_schema_metadata(told), path)
    with pytest.raises(ReleaseError, match="damaged"):
        load(path)


def test_a_description_that_lacks_a_part_is_damaged(release, tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "out.parquet"
    release.save(path)
    table = pq.read_table(path)
    story = json.loads(table.schema.metadata[b"dphist"])
    for damage in ("domain", "guarantee", "transcript", "estimate", "mechanism"):
        broken = {key: value for key, value in story.items() if key != damage}
        pq.write_table(table.replace_schema_metadata(stamped({b"dphist": json.dumps(broken).encode()})), path)
        with pytest.raises(ReleaseError, match="damaged"):
            load(path)


def test_output_that_cannot_be_written_leaves_nothing_behind(release, tmp_path, monkeypatch):
    with pytest.raises(OutputError, match="cannot write"):
        release.save(tmp_path / "no" / "such" / "folder.parquet")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(release_file, "write", full)
    with pytest.raises(OutputError, match="disk"):
        release.save(tmp_path / "out.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_crash_while_writing_keeps_the_old_file(release, tmp_path, monkeypatch):
    path = tmp_path / "out.parquet"
    release.save(path)
    before = path.read_bytes()

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(release_file, "write", crash)
    with pytest.raises(KeyboardInterrupt):
        release.save(path)
    assert path.read_bytes() == before
    assert [child.name for child in tmp_path.iterdir()] == ["out.parquet"]


def test_repr_says_what_it_is_and_no_count(release):
    assert "laplace" in repr(release)
    assert "0.5-differential privacy" in repr(release)


def test_attributes_to_keep_are_named_one_by_one_or_in_a_list(release):
    names = list(release.domain.names)
    assert np.array_equal(release.project(*names).counts, release.project(names).counts)
    assert np.array_equal(release.project(names[0]).counts, release.project([names[0]]).counts)
    for nothing in ((), ([],), (3,)):  # type: ignore[var-annotated]
        with pytest.raises(InputError):
            release.project(*nothing)


def test_the_estimate_is_handed_in_or_replayed_and_never_goes_stale(release):
    from dataclasses import replace

    assert "_estimate" in release.__dict__
    # Another transcript has another estimate: what was known does not travel with it.
    assert "_estimate" not in replace(release, note="other").__dict__
    assert np.array_equal(replace(release, note="other")._estimate.counts, release._estimate.counts)
    paid = release.with_receipt("people", 3, "ab")
    assert "_estimate" in paid.__dict__
    assert paid.receipt == ("people", 3, "ab")


def _with(release, **changes):
    from dataclasses import replace

    return replace(release, **changes)
