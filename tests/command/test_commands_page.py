"""The page of the command line says what the commands say."""

import re
from pathlib import Path

from commands_page import reference
from typer.main import get_command
from typer.testing import CliRunner

from dphist.cli.application import PANELS, Panels
from dphist.cli.commands import app

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_page_is_written_from_the_commands():
    assert PAGE.read_text(encoding="utf-8") == reference(), (
        "python tests/command/commands_page.py > docs/commands.md"
    )


def test_every_option_says_what_it_is():
    rows = [line.split("|") for line in reference().splitlines() if line.startswith("| `")]
    assert len(rows) > 60
    assert [name for _, name, words, *_ in rows if not words.strip()] == []


def test_a_release_that_is_read_is_not_called_as_if_it_were_written():
    """Commands that read a release had called it OUT, which is what publishing writes."""
    assert re.findall(r"\bOUT\b", reference()) == []
    assert "dphist query RELEASE [QUESTION…]" in reference()


def test_the_help_lists_every_command_once_under_a_heading():
    whole = get_command(app)
    assert isinstance(whole, Panels)
    listed = [name for names in PANELS.values() for name in names]
    assert list(whole.commands) == listed
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output
    assert re.findall(r"(?m)^([A-Z][\w ]+):$", shown) == ["Options", *PANELS]
    assert re.findall(r"(?m)^  (\w+)  ", shown) == listed
    assert "..." not in shown.partition("Begin:")[2]
