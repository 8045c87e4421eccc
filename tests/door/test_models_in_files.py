"""A file holds the model that answers: no question runs the mechanism again, and a forged model is refused."""

import contextlib
import json
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pyarrow.parquet as pq
import pytest
from small_releases import CUBE, LINE, PLANE, RELEASES, counts, saved

import dphist
from dphist.errors import DphistError, MechanismError, ReleaseError, VerificationError
from dphist.inference.estimate import NoiseErrors
from dphist.inference.predictive import learning
from dphist.mechanisms.registry import list_mechanisms
from dphist.release.contents import Contents

LINES = [
    name
    for name in list_mechanisms()
    if name not in ("gaussian", "spa", "residuals", "mixture", "sparselaplace", "adaptivegrid", "kdhybrid")
]
OTHERS = {
    **RELEASES,
    "gaussian": lambda: dphist.publish(counts(LINE), rho=1, mechanism="gaussian"),
    "integer plane": lambda: dphist.publish(counts(PLANE), epsilon=1).polished(
        nonnegative=True, integer=True
    ),
    "polished line": lambda: dphist.publish(counts(LINE), epsilon=1, mechanism="tree").polished(integer=True),
    "parts of laplace": lambda: dphist.publish(
        counts(CUBE), epsilon=1, mechanism="laplace", partition_by="p"
    ),
    "parts of trees": lambda: dphist.publish(
        counts(PLANE), epsilon=1, mechanism="adaptivetree", partition_by="x"
    ),
    "residuals": lambda: dphist.publish(counts(CUBE), epsilon=1, mechanism="residuals"),
    "mixture": lambda: dphist.publish(counts(CUBE), rho=1, mechanism="mixture"),
    "kdhybrid": lambda: dphist.publish(counts(PLANE), epsilon=1, mechanism="kdhybrid"),
    "ordered blocks": lambda: dphist.publish(counts(CUBE), epsilon=1, mechanism="blocks(order=sort)"),
    "privelet": lambda: dphist.publish(counts(CUBE), epsilon=1, mechanism="privelet"),
    "efpa": lambda: dphist.publish(counts(PLANE), epsilon=1, mechanism="efpa"),
}


def asked(release):
    """All that an analyst sees of some questions, by every method that there is."""
    first = release.domain.attributes[0]
    where = {first.name: first.labels[1] if isinstance(first, dphist.Nominal) else (2, 5)}
    seen = []
    for how in ("calibrated", "guaranteed"):
        for question in ({}, {"where": where}):
            try:
                answer = release.answer(**question, interval=how)
                seen += [answer.value, answer.low, answer.high]
            except DphistError as refused:
                seen.append(str(refused))
    table = release.project(release.domain.names[:2])
    return seen, np.concatenate([np.ravel(each) for each in (table.counts, table.low, table.high)])


@pytest.mark.parametrize("case", [*LINES, *OTHERS])
def test_a_file_answers_as_the_release_did_and_replays_nothing(case, tmp_path, monkeypatch):
    make = OTHERS.get(case) or (lambda: dphist.publish(counts(LINE), epsilon=1, mechanism=case))
    release, path = make(), tmp_path / "r.parquet"
    release.save(path)
    with monkeypatch.context() as patch:
        patch.setattr(Contents, "_replayed", None)
        seen, again = asked(release), asked(dphist.load(path))
        for one, other in zip(seen[0], again[0], strict=True):
            assert one == (other if isinstance(one, str) else pytest.approx(other, rel=1e-12, nan_ok=True))
        assert np.allclose(seen[1], again[1], rtol=1e-12, equal_nan=True)
        dphist.load(path).bounds(confidence=0.8)
        second = tmp_path / "again.parquet"
        dphist.load(path).save(second)
    dphist.load(second).verify()
    assert pq.read_schema(second).metadata[b"dphist"] == pq.read_schema(path).metadata[b"dphist"]


def test_sums_have_models_of_their_own(tmp_path, monkeypatch):
    import pandas as pd

    people = pd.DataFrame({"age": np.arange(640) % 64, "cost": np.arange(640) % 7})
    measure = dphist.Measure("cost", low=0, high=6)
    release = dphist.publish(people, LINE, 1, measures=[measure], mechanism="tree")
    release.save(tmp_path / "r.parquet")
    again = dphist.load(tmp_path / "r.parquet")
    monkeypatch.setattr(Contents, "_replayed", None)
    for one, other in zip(release.sums, again.sums, strict=True):
        assert asked(one.release)[0] == asked(other.release)[0]
    assert repr(release.mean("cost")) == repr(again.mean("cost"))


@pytest.mark.parametrize("mechanism", ["adaptivetree", "posterior"])
def test_what_is_learned_is_in_the_file_and_numbers_of_every_cell_in_columns(
    mechanism, tmp_path, monkeypatch
):
    domain = dphist.Domain([dphist.Ordinal("x", range(5000))])
    histogram = dphist.Histogram(domain, np.arange(domain.size) // 100)
    release = dphist.publish(histogram, epsilon=1, mechanism=mechanism)
    release.save(tmp_path / "r.parquet")
    if mechanism == "posterior":

        def beside(story):
            """Numbers that nobody reads, because a column has them."""
            next(each for each in story["model"]["arrays"] if "column" in each)["data"] = "NTE4"

        with pytest.raises(VerificationError, match="model"):
            saved(release, tmp_path / "f.parquet", beside).verify()
    monkeypatch.setattr(learning, "_learned", None)
    again = dphist.load(tmp_path / "r.parquet")
    assert repr(again.answer("x between 9 and 99")) == repr(release.answer("x between 9 and 99"))
    names = pq.read_schema(tmp_path / "r.parquet").names
    assert [name for name in names if name.startswith("model")] == [
        f"model_{i}" for i in range(3 if mechanism == "posterior" else 0)
    ]
    # What was read is written as it was.
    again.save(tmp_path / "s.parquet")
    assert (tmp_path / "r.parquet").read_bytes() == (tmp_path / "s.parquet").read_bytes()


@pytest.mark.parametrize("case", ["line", "plane", "tables", "cube", "wide", "parts of trees", "privelet"])
def test_a_forged_model_is_refused_when_it_is_verified(case, tmp_path):
    release = OTHERS[case]()

    def surer(story):
        """Noise that is said to be less than it was."""
        before = json.dumps(story["model"])
        for key in ("variance", "size", "scale", "scales"):
            _change(story["model"]["errors"], key)
        assert json.dumps(story["model"]) != before

    def more(story):
        story["model"]["errors"]["remark"] = "518 women"

    def unread(story):
        story["model"]["arrays"].append(dict(story["model"]["arrays"][0]) if story["model"]["arrays"] else {})

    # Whoever forges writes the rest as the writer does: what is refused is the model.
    saved(release, tmp_path / "r.parquet").verify()
    for forge in (surer, more, unread):
        forged = saved(release, tmp_path / "r.parquet", forge)
        with pytest.raises((VerificationError, ReleaseError), match="model"):
            forged.verify()


def _change(story, key):
    for name, value in list(story.items()) if isinstance(story, dict) else list(enumerate(story)):
        if name == key and isinstance(value, str):
            story[name] = str(Fraction(value) / 4)
        elif name == key and isinstance(value, list):
            story[name] = [each / 4 for each in value]
        elif name == key and isinstance(value, float):
            story[name] = value / 4
        elif name == key and isinstance(value, int):
            # Another array in its place.
            story[name] = value - 1 if value else value + 1
        elif isinstance(value, dict | list):
            _change(value, key)


@pytest.mark.parametrize(
    "case", ["line", "plane", "tables", "parts of trees", "ordered blocks", "efpa", "wide"]
)
def test_a_model_that_fits_nothing_is_named_and_reads_no_foreign_memory(case, tmp_path):
    release = OTHERS[case]()
    rng = np.random.default_rng(3)

    def shuffled(story):
        for entry in story["model"]["arrays"]:
            if rng.random() < 0.5:
                entry["dtype"] = "<i8" if entry["dtype"] == "<f8" else "<f8"
            elif "data" in entry:
                entry["data"] = story["model"]["arrays"][0].get("data", "")

    def empty(story):
        story["model"]["errors"] = {"model": "tree"}

    def unknown(story):
        story["model"]["errors"]["model"] = "of next year"

    for forge in (shuffled, empty, unknown):
        forged = saved(release, tmp_path / "r.parquet", forge)
        if forge is shuffled:
            # Numbers that fit are answered by; `verify` refuses them.
            with contextlib.suppress(ReleaseError):
                asked(forged)
        else:
            with pytest.raises(ReleaseError, match="model"):
                asked(forged)


def test_errors_of_ones_own_kind_cannot_be_saved(tmp_path):
    class Mine(NoiseErrors):
        method = "mine"

    release = dphist.publish(counts(LINE), epsilon=1, mechanism="laplace")
    object.__setattr__(release._estimate, "errors", Mine())
    with pytest.raises(MechanismError, match="Mine is no model that a release can hold"):
        release.save(tmp_path / "r.parquet")
    assert not (tmp_path / "r.parquet").exists()


READER = """
import sys

class Closed:
    def find_spec(self, name, path=None, target=None):
        if name in {"dphist.mechanisms", "dphist.private", "dphist.sources", "dphist.publishing", "dphist.planning"}:
            raise AssertionError(f"a reader loaded {name}")

sys.meta_path.insert(0, Closed())
from pathlib import Path
import dphist
from dphist.release.exporting import export

release = dphist.load("r.parquet")
first, second = release.domain.names[:2]
release.answer(where={first: (2, 5)})
release.by(first)
release.project([first, second])
release.quantiles("x", [0.5])
release.sql("select sum(estimate) from release")
release.records(9)
release.report("page.html")
release.bounds(confidence=0.8)
export(release, Path("copy.csv"))
print(release.describe())
"""


def test_a_reader_loads_no_mechanism_and_nothing_of_the_trusted_core(tmp_path):
    dphist.publish(counts(PLANE), epsilon=1).save(tmp_path / "r.parquet")
    run = subprocess.run(
        [sys.executable, "-c", READER], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.rstrip().endswith("auto")


@pytest.mark.parametrize(
    "command",
    [["show"], ["query", "x=2"], ["report", "-o", "p.html"], ["export", "-o", "c.csv"]],
    ids=lambda command: command[0],
)
def test_commands_that_read_load_no_mechanism(command, tmp_path):
    dphist.publish(counts(PLANE), epsilon=1, mechanism="laplace").save(tmp_path / "r.parquet")
    closed = READER[: READER.index("from pathlib")]
    (tmp_path / "sitecustomize.py").write_text(closed)
    line = [sys.executable, "-m", "dphist", command[0], "r.parquet", *command[1:]]
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        line,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
