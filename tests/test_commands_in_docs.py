"""Every `dphist …` that a page names is a command that there is, with options that it takes."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from dphist.cli.commands import app
from dphist_bench import catalogue, command

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(dphist [^`]+)`")
LINE = re.compile(r"^(?:\$ |.*&& )?(?:\.venv/bin/)?(dphist .*)$", re.MULTILINE)
# Quoted questions may hold anything.
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def commands_of(text: str) -> list[str]:
    """What blocks and sentences of a page name, comments and quoted words left out."""
    found = []
    for language, block in FENCE.findall(text):
        if language in ("", "sh", "console"):
            found += LINE.findall(block.replace("\\\n", " "))
    found += INLINE.findall(FENCE.sub("", text))
    return [re.split(r" [#|&>]", QUOTED.sub("TEXT", each.replace("\n", " ")))[0] for each in found]


@cache
def tree() -> Any:
    return typer.main.get_command(app)


@cache
def laboratory() -> Any:
    return typer.main.get_command(command.app)


def options_of(command: Any) -> set[str]:
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {"--help", "-h"}


@cache
def options_of_measurement(name: str) -> set[str]:
    """By its source: importing all of them would take longer than all else here."""
    home = Path(catalogue.__file__).parent
    places = (*home.glob(f"measurements/*/{name}.py"), *sorted((home / name).glob("*.py")))
    found = {"--help"}
    for source in (place.read_text(encoding="utf-8") for place in places):
        found |= set(re.findall(r"\"(--[\w-]+)\"", source))
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef) and node.name == "measure":
                names = (each.arg.replace("_", "-") for each in node.args.kwonlyargs)
                found |= {f"{'-' if len(name) == 1 else '--'}{name}" for name in names}
    return found


def wrong_with(line: str) -> str:
    """What is wrong with a command, in words; nothing if nothing is."""
    words = line.split()[1:]
    given = {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)}
    here: Any = tree()
    while words and hasattr(here, "commands") and not words[0].startswith("-"):
        word = words.pop(0)
        if word == "bench":
            here = laboratory()
        elif word in here.commands:
            here = here.commands[word]
        elif word.isupper() or word == "…":
            return ""
        else:
            return f"there is no {word}"
    known = options_of(here)
    if here.name == "run" and words and words[0] != "NAME":
        known |= options_of_measurement(words[0]) if words[0] in catalogue.MEASUREMENTS else set()
        if words[0] not in catalogue.MEASUREMENTS and not catalogue.chosen(words[0]):
            return f"there is no {words[0]}"
    return " ".join(sorted(given - known))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_are_there_with_these_options(page):
    found = commands_of(page.read_text(encoding="utf-8"))
    assert {line: wrong for line in found if (wrong := wrong_with(line))} == {}


def test_wrong_commands_are_seen():
    page = "Run `dphist publsh x` or `dphist ledger crate`.\n\n```sh\ndphist plan --colour red  # no\n```\n"
    wrong = [wrong_with(line) for line in commands_of(page)]
    assert wrong == ["--colour", "there is no publsh", "there is no crate"]
    assert wrong_with("dphist bench run coverage --nothing") == "--nothing"
    assert len(commands_of((ROOT / "README.md").read_text(encoding="utf-8"))) > 10
