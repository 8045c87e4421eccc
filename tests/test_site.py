"""The documentation site builds without a warning, and looks nowhere else; the tutorial works as it is written."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TUTORIAL = ROOT / "docs" / "tutorial.md"
ASIDE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^\"'\s>]+")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    for needed in ("zensical", "mkdocstrings"):
        if find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed: pip install 'dphist[docs]'")
    # It writes beside its settings, and keeps what it made.
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    (folder / "src").symlink_to(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.mark.slow
def test_the_site_builds_strictly_with_every_page(site):
    pages = {str(page.relative_to(site)) for page in site.rglob("index.html")}
    for written in (ROOT / "docs").rglob("*.md"):
        name = str(written.relative_to(ROOT / "docs").with_suffix("")).removesuffix("index").rstrip("/")
        assert f"{name}/index.html".lstrip("/") in pages, written
    home = (site / "index.html").read_text(encoding="utf-8")
    for written in (ROOT / "docs" / "mechanisms").glob("*.md"):
        assert f'href="./mechanisms/{written.stem}/"' in home, written


@pytest.mark.slow
def test_the_reference_has_what_people_call(site):
    text = (site / "reference" / "index.html").read_text(encoding="utf-8")
    for name in ("publish", "Release", "answer", "Workload", "check_mechanism", "BudgetExhausted"):
        assert name in text


@pytest.mark.slow
def test_no_page_of_the_site_loads_anything_from_elsewhere(site):
    for page in site.rglob("*.html"):
        loaded = [
            tag for tag in ASIDE.findall(page.read_text(encoding="utf-8")) if 'rel="canonical"' not in tag
        ]
        assert loaded == [], page


@pytest.mark.slow
def test_the_tutorial_works_typed_in_literally(tmp_path):
    typed = re.findall(r"^```sh\n(.*?)^```", TUTORIAL.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    script = tmp_path / "typed.sh"
    script.write_text("set -euo pipefail\n" + "\n".join(typed), encoding="utf-8")
    folder = tmp_path / "empty"
    folder.mkdir()
    # The commands a reader gets when they install dphist: those beside this Python.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", str(script)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    assert "age 100 × sex 2 × hour 24 = 4,800 combinations" in said
    assert "age 100 × sex 2 × hour 24 = 4,800 combinations" in TUTORIAL.read_text(encoding="utf-8")
    assert "visits: spent 1 of 3, 2 left" in said
    assert "verified" in said
    made = {each.name for each in folder.iterdir()}
    assert {"visits.parquet", "visits.html", "ages.png", "map.svg"} <= made
    assert (folder / "ages.png").read_bytes().startswith(b"\x89PNG")
