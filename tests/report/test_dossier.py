"""The papers that go with a release: filled from it, or marked; and what their readers' own checks say of them."""

import csv
import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from jsonschema import Draft7Validator
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.report import write_dossier

DOMAIN = dphist.Domain(
    [
        dphist.Ordinal("age", range(20, 40)),
        dphist.Ordinal("income", edges=[0, 10_000, 25_000.5], other=True),
        dphist.Ordinal("day", dates=("2024-01-01", "2024-01-03")),
        dphist.Nominal("smokes", [False, True]),
    ]
)
ABOUT = {
    "title": "Smoking: a survey", "publisher": "City of Example", "contact": "data@example.org", "version": "1.0.0",
    "licence": "https://creativecommons.org/licenses/by/4.0/", "purpose": "Planning clinics", "created": "2024-05-01",
    "doi": "10.1234/abcd", "contact_point": "Statistics desk",
}  # fmt: skip


def texts(*names: str) -> dict[str, Any]:
    return {name: {"type": "string", "minLength": 1} for name in names}


def closed(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


BASIC = ("name", "intended_use", "data_product_region", "description")
# The form of the registry's records as published in 2026: its fields, lists of values and what is required.
# Their own checks were run on a record by hand as well (see docs/howto/dossier.md).
FORM = closed(
    ("url_slug", "status", "tier", "deployment"),
    **texts("url_slug"),
    status={"enum": ["Draft"]},
    tier={"enum": [1, 2, 3]},
    deployment=closed(
        ("basic",),
        basic=closed(
            (*BASIC, "data_curators", "data_product_type", "publication_date"),
            **texts(*BASIC),
            data_curators={"type": "array", "items": {"type": "string"}, "minItems": 1},
            data_product_type={"enum": ["Summary statistics", "Dataset"]},
            publication_date={"type": "string", "format": "date"},
        ),
        dp_variant=closed(
            variant_name={"enum": ["Pure DP", "Approximate DP", "Zero-concentrated DP"]},
            **texts("data_domain", "unprotected_quantities"),
        ),
        privacy_loss=closed(
            **texts("privacy_unit", "privacy_unit_details", "privacy_parameters_details"),
            privacy_parameters=closed(
                epsilon={"type": "number"}, delta={"type": "number"}, rho={"type": "number"}
            ),
        ),
        deployment_model=closed(
            model_name={"enum": ["Central"]},
            release_type={"enum": ["One release", "Many releases"]},
            access_type={"enum": ["Interactive", "Non-interactive"]},
            **texts("actors", "release_type_details", "access_type_details"),
        ),
        accounting=closed(**texts("post_processing", "composition")),
        implementation=closed(
            **texts("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification")
        ),
        administrative=closed(
            ("registry_authors",),
            **texts("sources", "notes"),
            registry_authors={"type": "array", "items": {"type": "string"}, "minItems": 1},
        ),
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A release paid from a ledger, and its papers, made by the command."""
    place = tmp_path_factory.mktemp("dossier")
    counts = np.random.default_rng(7).integers(0, 9, DOMAIN.shape)
    with dphist.Ledger.open(place / "budget.db") as book:
        book.create("patients", 3)
        release = dphist.publish(
            dphist.Histogram(DOMAIN, counts), epsilon="1/2", mechanism="laplace", ledger=book, dataset="patients",
            about=ABOUT,
        )  # fmt: skip
        release.save(place / "out.parquet")
    given = [
        str(place / "out.parquet"), "-o", str(place / "papers"), "--ledger", str(place / "budget.db"),
    ]  # fmt: skip
    done = CliRunner().invoke(app, ["dossier", *given])
    assert done.exit_code == 0, done.output
    return place


def read(folder: Path, name: str) -> str:
    return (folder / "papers" / name).read_text(encoding="utf-8")


def test_the_registry_record_has_the_registrys_form(folder):
    text = read(folder, "registry_record.yaml")
    record = yaml.safe_load(text)
    checker = Draft7Validator(FORM, format_checker=Draft7Validator.FORMAT_CHECKER)
    assert [error.message for error in checker.iter_errors(record)] == []
    deployment = record["deployment"]
    assert deployment["basic"]["data_curators"] == ["City of Example"]
    assert deployment["basic"]["publication_date"] == "2024-05-01"
    assert deployment["privacy_loss"]["privacy_parameters"] == {"epsilon": 0.5}
    assert "TO FILL" in deployment["basic"]["data_product_region"]
    # Their checks refuse folded texts and doubled backslashes.
    assert not re.search(r": [>|]", text)
    assert "\\\\" not in text
    broken = {**record, "surprise": 1}
    assert list(checker.iter_errors(broken))


def test_the_assessment_answers_every_concern_or_marks_it(folder):
    text = read(folder, "self-assessment.md")
    sections = text.split("\n## ")[1:]
    assert len(sections) == 14
    for section in sections:
        assert len(section.split("\n\n", 1)[1]) > 40, section
    assert "0.5-differential privacy for one row" in text
    assert "laplace" in text
    assert "why this value is acceptable" in text


def test_the_memo_says_what_was_paid_and_what_is_left(folder):
    text = read(folder, "budget-memo.md")
    assert "Total 3, spent 0.5, left 2.5" in text
    assert "**this release**" in text
    assert "0.5 of 0.5 ε" in text


def test_cells_whose_noise_exceeds_their_count_are_flagged_and_published(folder):
    release = dphist.load(folder / "out.parquet")
    low, high = release.bounds()
    wanted = int((~((high - low) / 2 <= release.counts.reshape(-1))).sum())
    with (folder / "papers" / "uncertain-cells.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert 0 < len(rows) == wanted < DOMAIN.size
    for row in rows:
        assert (float(row["high"]) - float(row["low"])) / 2 > float(row["estimate"])
    assert f"{wanted:,} of {DOMAIN.size:,} published counts are flagged" in read(folder, "self-assessment.md")


def test_of_measured_tables_their_cells_are_flagged_and_no_guess(tmp_path):
    names = ("age", "job", "place")
    domain = dphist.Domain([dphist.Ordinal(name, range(6)) for name in names])
    people = dphist.Histogram(domain, np.random.default_rng(2).poisson(1, domain.shape))
    release = dphist.publish(people, epsilon=1, workload="marginals:1", mechanism="marginals")
    release.save(tmp_path / "out.parquet")
    write_dossier(tmp_path / "out.parquet", tmp_path / "papers")
    with (tmp_path / "papers" / "uncertain-cells.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["table"] for row in rows} <= {"total", *names}
    assert "of 19 published counts are flagged" in read(tmp_path, "self-assessment.md")
    story = json.loads(read(tmp_path, "dcat.json"))
    assert "place (6): 4 tables of up to 1 attribute" in story["dcterms:description"]
    fields = json.loads(read(tmp_path, "croissant.json"))["recordSet"][0]["field"]
    columns = pq.read_schema(tmp_path / "out.parquet").names
    assert [field["name"] for field in fields] == columns == ["table", *names, "estimate", "low", "high"]


def test_croissants_own_validator_reads_the_release_by_it(folder, tmp_path):
    if find_spec("mlcroissant") is None:
        pytest.skip("mlcroissant is not installed")
    for name in ("out.parquet", "papers/croissant.json"):
        (tmp_path / Path(name).name).write_bytes((folder / name).read_bytes())
    code = (
        "import itertools, json, mlcroissant\n"
        "found = mlcroissant.Dataset(jsonld='croissant.json')\n"
        "issues = found.metadata.issues\n"
        "rows = list(itertools.islice(found.records('cells'), 3))\n"
        "print(json.dumps([sorted(issues.errors), sorted(issues.warnings), len(rows), rows[0]['cells/age'], "
        "rows[0]['cells/estimate']]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    estimate = float(dphist.load(folder / "out.parquet").counts.reshape(-1)[0])
    assert json.loads(done.stdout.splitlines()[-1]) == [[], [], 3, 20, estimate]


def test_dcat_says_the_same(folder):
    story = json.loads(read(folder, "dcat.json"))
    assert story["dcterms:publisher"]["foaf:name"] == "City of Example"
    assert story["dcterms:issued"]["@value"] == "2024-05-01"
    checksum = story["dcat:distribution"]["spdx:checksum"]["spdx:checksumValue"]
    assert checksum == json.loads(read(folder, "croissant.json"))["distribution"][0]["sha256"]


def test_under_rho_the_papers_say_so(tmp_path):
    domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
    people = dphist.Histogram(domain, np.array([50, 90]))
    dphist.publish(people, epsilon=1, delta="1e-9", mechanism="gaussian").save(tmp_path / "out.parquet")
    write_dossier(tmp_path / "out.parquet", tmp_path / "papers")
    record = yaml.safe_load(read(tmp_path, "registry_record.yaml"))["deployment"]
    assert record["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    assert set(record["privacy_loss"]["privacy_parameters"]) == {"rho", "epsilon", "delta"}
    assert "ρ" in read(tmp_path, "budget-memo.md")


def test_papers_that_were_edited_are_not_written_over_unless_forced(folder, tmp_path):
    write = [folder / "out.parquet", tmp_path / "papers"]
    write_dossier(*write)
    again = {path.name: path.read_bytes() for path in write_dossier(*write)}
    memo = tmp_path / "papers" / "budget-memo.md"
    memo.write_text(memo.read_text(encoding="utf-8") + "Approved by the board.\n", encoding="utf-8")
    with pytest.raises(dphist.errors.OutputError, match=r"budget-memo\.md.*--force"):
        write_dossier(*write)
    refused = CliRunner().invoke(app, ["dossier", str(write[0]), "-o", str(write[1])])
    assert isinstance(refused.exception, dphist.errors.OutputError)
    assert memo.read_text(encoding="utf-8").endswith("Approved by the board.\n")
    done = CliRunner().invoke(app, ["dossier", str(write[0]), "-o", str(write[1]), "--force"])
    assert done.exit_code == 0, done.output
    assert memo.read_bytes() == again["budget-memo.md"]


def test_papers_name_no_ledger_that_did_not_pay(folder, tmp_path):
    """Another ledger has a budget of this name and a payment of this number, too."""
    with dphist.Ledger.open(tmp_path / "other.db") as book:
        book.create("patients", 3)
        dphist.publish(
            dphist.Histogram(DOMAIN, np.zeros(DOMAIN.shape, dtype=int)), epsilon="1/2", mechanism="laplace",
            ledger=book, dataset="patients",
        )  # fmt: skip
    words = ["dossier", str(folder / "out.parquet"), "-o", str(tmp_path / "papers"), "--ledger"]
    done = CliRunner().invoke(app, [*words, str(tmp_path / "other.db")])
    assert isinstance(done.exception, dphist.errors.VerificationError)
    assert not (tmp_path / "papers").exists()
    write_dossier(folder / "out.parquet", tmp_path / "papers")
    assert "The release says that payment" in read(tmp_path, "budget-memo.md")


def test_names_are_letters_in_the_papers_and_nothing_else(tmp_path):
    hostile = "[click](javascript:alert(1))\n\n# <b>Approved</b> ![x](y) | `z` *"
    name = hostile.replace("\n", "")
    domain = dphist.Domain([dphist.Nominal(name, ["F", "M"])])
    people = dphist.Histogram(domain, np.array([50, 90]))
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create(name, 3)
        dphist.publish(
            people, epsilon=1, mechanism="laplace", about={"title": hostile, "purpose": name},
            ledger=book, dataset=name,
        ).save(tmp_path / "out.parquet")  # fmt: skip
    words = ["dossier", str(tmp_path / "out.parquet"), "-o", str(tmp_path / "papers"), "--ledger"]
    done = CliRunner().invoke(app, [*words, str(tmp_path / "budget.db")])
    assert done.exit_code == 0, done.exception
    for path in (tmp_path / "papers").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert "click" in text
        # What a backslash stands before is that letter.
        left = re.sub(r"\\.", "", text)
        assert not re.search(r"\[click|<b>|# *Approved|!\[|`z", left), path.name


def test_what_nobody_said_is_marked_and_listed(tmp_path):
    domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
    release = dphist.publish(dphist.Histogram(domain, np.array([50, 90])), epsilon=1, mechanism="laplace")
    release.save(tmp_path / "out.parquet")
    written = write_dossier(tmp_path / "out.parquet", tmp_path / "papers")
    readme = written[0].read_text(encoding="utf-8")
    for path in written[1:-1]:
        text = path.read_text(encoding="utf-8")
        assert "TO FILL" in text
        told = int(re.search(rf"`{re.escape(path.name)}` \|.*\| (\d+) \|", readme)[1])  # type: ignore[index]
        assert told == len(re.findall("TO FILL:", text))
    with pytest.raises(dphist.errors.InputError, match="ledger"):
        CliRunner().invoke(
            app, ["dossier", str(tmp_path / "out.parquet"), "--ledger", "x.db"], catch_exceptions=False
        )
    (tmp_path / "file").write_text("")
    with pytest.raises(dphist.errors.OutputError, match="folder"):
        write_dossier(tmp_path / "out.parquet", tmp_path / "file")
