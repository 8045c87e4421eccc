"""What constants are worth: the short form runs, and leaves them as they were."""

from dphist.mechanisms import adaptivetree
from dphist.mechanisms.trees import planning
from dphist_bench.measurements.accuracy.constants import measure


def test_the_short_form_runs():
    before = adaptivetree.CONSTANTS, planning.CONSTANTS
    lines = list(measure(quick=True))
    assert before == (adaptivetree.CONSTANTS, planning.CONSTANTS)
    assert "PlannedConstants: 2 cases" in lines[0]
    assert [line["constant"] for line in lines[1::2]] == ["total", "first_level"]  # type: ignore[index]
