"""What constants are worth: the short form runs, and leaves them as they were."""

from dphist.mechanisms import adaptivetree
from dphist.mechanisms.trees import planning
from dphist_bench.constants import main


def test_the_short_form_runs(capsys):
    before = adaptivetree.CONSTANTS, planning.CONSTANTS
    assert main(["--quick"]) == 0
    assert before == (adaptivetree.CONSTANTS, planning.CONSTANTS)
    text = capsys.readouterr().out
    assert "PlannedConstants: 2 cases" in text
    assert "first_level" in text
