"""Every Python snippet in the README and the docs runs, page by page, top to bottom."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
# A test that a page names for what it says.
TEST = re.compile(r"`(?:tests/)?((?!tests/)\w+/test_\w+\*?\.py)(?:::\w+)?`")
# Where the words of a page end and a machine's begin.
HOSTS = re.compile(r"(?:^|[\s(`\"'])/(?:work|tmp|root|home)/")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_snippets_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "snippet"}
    for match in SNIPPET.finditer(page.read_text(encoding="utf-8")):
        # The blank lines keep the line numbers of the page in tracebacks.
        before = page.read_text(encoding="utf-8")[: match.start(1)].count("\n")
        exec(compile("\n" * before + match[1], str(page), "exec"), names)  # noqa: S102


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere_and_no_path_of_a_machine_is_named(page):
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(text):
        assert (page.parent / target).exists(), target
    assert not HOSTS.search(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_are_named_are_there(page):
    for name in TEST.findall(page.read_text(encoding="utf-8")):
        assert list((ROOT / "tests").glob(name)), name
