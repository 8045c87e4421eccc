"""What the custodian says of a release: each thing can be said at every way in, and is read at each way out."""

import inspect
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.model.about import FACTS
from dphist.release import About
from dphist.report import write_dossier
from dphist.uses import export

ROOT = Path(__file__).parents[2]
# A text for each that stands nowhere else.
SAID = {name: f"said of {name} alone" for name in FACTS} | {"created": "2024-05-01"}


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    """A release that everything is said of, by the command."""
    place = tmp_path_factory.mktemp("said")
    pa.csv.write_csv(pa.table({"age": [30, 31, 31] * 50}), place / "people.csv")
    (place / "people.toml").write_text(
        '[[attribute]]\nname = "age"\nkind = "ordinal"\nrange = [30, 33]\n', encoding="utf-8"
    )
    words = [word for name, text in SAID.items() for word in (f"--{name.replace('_', '-')}", text)]
    given = [
        "publish", str(place / "people.csv"), "--schema", str(place / "people.toml"), "--epsilon", "1",
        "-o", str(place / "out.parquet"), *words,
    ]  # fmt: skip
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    return place


def test_the_file_has_what_was_said(room):
    words = pq.read_schema(room / "out.parquet").metadata
    assert {name: words[name.encode()].decode() for name in FACTS} == SAID
    assert dphist.load(room / "out.parquet").about.given() == SAID


def test_python_takes_the_same_names(room, tmp_path):
    release = dphist.load(room / "out.parquet")
    assert release.with_about({name: f"now {name}" for name in FACTS if name != "created"}).about == About(
        **{name: f"now {name}" for name in FACTS} | {"created": "2024-05-01"}
    )
    release.save(tmp_path / "out.parquet", about=SAID)
    assert dphist.load(tmp_path / "out.parquet").about == release.about
    with pytest.raises(dphist.errors.InputError, match=", ".join(FACTS)):
        release.with_about({"colour": "red"})


def test_the_day_is_today_unless_told():
    people = dphist.Histogram(dphist.Domain([dphist.Ordinal("age", range(2))]), [5, 9])
    about = dphist.publish(people, epsilon=1, mechanism="laplace").about
    assert list(about.given()) == ["created"]


def test_every_way_out_shows_all_of_it(room, tmp_path):
    release = dphist.load(room / "out.parquet")
    export(release, tmp_path / "out.xlsx")
    told = pd.read_excel(tmp_path / "out.xlsx", sheet_name="about", header=None, index_col=0, dtype=str)[1]
    shown = json.loads(CliRunner().invoke(app, ["show", str(room / "out.parquet"), "--json"]).output)
    assert {name: told[name] for name in FACTS} == {name: shown[name] for name in FACTS} == SAID
    page = release.report(title="a page")
    assert [name for name in FACTS if f"<dt>{FACTS[name].label}</dt><dd>{SAID[name]}</dd>" not in page] == []
    papers = {path.name: path for path in write_dossier(room / "out.parquet", tmp_path / "papers")}
    written = [path for form in ("csv", "tsv") for path in export(release, tmp_path / f"out.{form}")]
    for place, path in enumerate([*written, papers["croissant.json"], papers["dcat.json"]]):
        # Of a table and what describes it the second says it.
        text, said = path.read_text(encoding="utf-8"), place not in (0, 2)
        assert {text.count(each) > 0 for each in SAID.values()} == {said}, path


def test_help_and_documentation_say_what_it_is():
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for name, fact in FACTS.items():
        assert f"| `--{name.replace('_', '-')}` | {fact.help} |" in page
        assert f"\n    {name}: {fact.help}\n" in f"{inspect.getdoc(About)}\n"


def test_a_catalogue_asks_for_what_it_wants_and_nobody_said():
    wanted = About(doi="10.1234/abcd").describe("dcat", {"dcterms:issued": {"@type": "xsd:date"}}, str.upper)
    assert wanted["dcterms:issued"] == {"@type": "xsd:date", "@value": FACTS["created"].wanted.upper()}
    assert wanted["dcterms:publisher"] == {"foaf:name": "WHO PUBLISHES THE RELEASE"}
    assert wanted["dcterms:identifier"] == "10.1234/abcd"
    assert About().describe("schema", {"identifier": "there"}) == {"identifier": "there"}
