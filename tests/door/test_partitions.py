"""One mechanism run per value of a public attribute: the whole ε each, one release, one entry in the ledger."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dphist
from dphist.errors import DomainError, EngineError, InputError, MechanismError, VerificationError
from dphist.inference.pieces import PartErrors
from dphist.mechanisms.baseline import Laplace
from dphist.mechanisms.bypart import ByPart
from dphist.mechanisms.options import parse
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.histogram import Histogram
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.gate import PrivateCounts, open_gate
from dphist.private.queries.counting import Identity
from dphist.release import DenseCells
from dphist.testing import run

DOMAIN = Domain(
    [Ordinal("age", range(6)), Nominal("region", ["n", "e", "s", "w"]), Nominal("sex", ["F", "M"])]
)
COUNTS = (np.arange(48).reshape(6, 4, 2) * 37) % 101
HISTOGRAM = Histogram(DOMAIN, COUNTS)


def test_each_part_gets_the_whole_budget_and_the_release_verifies() -> None:
    release = dphist.publish(HISTOGRAM, epsilon="1/3", mechanism="laplace", partition_by=["region"])
    assert release.transcript.spent() == Fraction(1, 3)
    assert [entry.path for entry in release.transcript] == [f"root/d{part}" for part in range(4)]
    assert all(entry.epsilon == Fraction(1, 3) for entry in release.transcript)
    release.verify()
    assert release.counts.shape == DOMAIN.shape


@pytest.mark.parametrize("by", ["region", ["sex", "age"], ("age",)])
@pytest.mark.parametrize("inner", ["laplace", "privelet", "auto", "noisefirst"])
def test_pieces_come_back_where_they_belong(by: Any, inner: str) -> None:
    release = dphist.publish(HISTOGRAM, epsilon=10**6, mechanism=inner, partition_by=by)
    assert np.abs(release.counts - COUNTS).max() < 0.5
    release.verify()


def test_intervals_are_those_of_plain_laplace() -> None:
    workload = Workload.random(DOMAIN, 40, seed=3)
    parted = dphist.publish(HISTOGRAM, epsilon=1, mechanism="laplace", partition_by=["region", "sex"])
    plain = dphist.publish(HISTOGRAM, epsilon=1, mechanism="laplace")
    one, other = parted.answer(workload), plain.answer(workload)
    for answers in (one, other):
        assert answers.high.shape == (40,)
    widths = [(answers.high - np.where(answers.low > 0, answers.low, np.nan)) for answers in (one, other)]
    assert (
        np.allclose(widths[0], widths[1], equal_nan=True) or np.nanmax(np.abs(widths[0] - widths[1])) < 1e-6
    )


def test_a_question_about_one_part_has_the_answer_and_the_interval_of_that_part() -> None:
    parts = Domain([Ordinal("x", range(60)), Nominal("part", ["a", "b"])])
    counts = np.stack([np.arange(60), np.where(np.arange(60) < 30, 40, 0)], axis=1)
    inner = parse("posterior")
    estimate = run(ByPart(by=("part",), inner=inner), Histogram(parts, counts), "1/2", seed=11)
    errors = estimate.errors
    assert isinstance(errors, PartErrors)
    line = parts.project(["x"])
    whole = Workload.random(line, 25, seed=4)
    pieces = Workload(line, np.array([[0], [40], [7]]), np.array([[5], [60], [9]]), np.array([0, 0, 1]))
    for place in (0, 1):
        for alone in (whole, Workload.cells(line), pieces):
            low, high = (
                np.column_stack([end, np.full(len(end), place + more)])
                for end, more in ((alone.low, 0), (alone.high, 1))
            )
            asked = Workload(parts, low, high, alone.query)
            own, cells = errors.errors[place], errors.counts[place]
            answer = own.answer(alone, np.asarray(alone.answer(cells.reshape(60)), dtype=np.float64))
            summed = np.asarray(asked.answer(estimate.counts.reshape(parts.shape)), dtype=np.float64)
            assert np.allclose(errors.answer(asked, summed), answer)
            expected, found = own.interval(alone, answer, 0.9), errors.interval(asked, answer, 0.9)
            assert np.allclose(found.low, expected.low)
            assert np.allclose(found.high, expected.high)


def test_people_in_several_parts_are_steps_wherever_their_rows_lie() -> None:
    unit = Unit(rows=3)
    right, transcript = open_gate(HISTOGRAM, 1, unit)
    parts = right.separate(["region"])
    assert {part.unit_scale for part in parts} == {Fraction(3)}
    for part in parts:
        part.measure(Identity())
    assert transcript.spent() == 1


def test_rows_per_person_are_bounded_over_all_parts() -> None:
    rows = pa.table({"user": [1] * 8, "region": ["n", "e", "s", "w"] * 2, "age": [1] * 8, "sex": ["F"] * 8})
    release = dphist.publish(
        rows, DOMAIN, 10**7, "laplace", unit=Unit(rows=2, id="user"), partition_by="region", allow_dropped=1
    )
    assert round(release.counts.sum()) == 2


def test_a_right_is_used_up_by_separating() -> None:
    right, _ = open_gate(HISTOGRAM, 1, Unit())
    right.separate(["region"])
    with pytest.raises(dphist.errors.RightUsed):
        right.separate(["region"])
    right, _ = open_gate(HISTOGRAM, 1, Unit())
    with pytest.raises(MechanismError, match="leave at least one"):
        right.separate(["region", "sex", "age"])


def test_what_cannot_be_partitioned_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("adults", 1)
        paid: dict[str, Any] = {"ledger": ledger, "dataset": "adults"}
        for by, mechanism, error in [
            (["nowhere"], "laplace", DomainError),
            (["region", "sex", "age"], "laplace", InputError),
            (["region"], "sparselaplace", MechanismError),
            (["region"], Refusing(), MechanismError),
        ]:
            with pytest.raises(error):
                dphist.publish(HISTOGRAM, epsilon=1, mechanism=mechanism, partition_by=by, **paid)  # type: ignore[arg-type]
        assert ledger.spent("adults") == 0
        release = dphist.publish(HISTOGRAM, epsilon="1/2", mechanism="laplace", partition_by="region", **paid)
        assert len(ledger.entries("adults")) == 1
        assert ledger.spent("adults") == Fraction(1, 2)
        assert release.receipt is not None


@dataclass(frozen=True, kw_only=True)
class Refusing:
    def estimate(self, data: PrivateCounts) -> Any:
        raise MechanismError("not here")


def test_altering_one_part_is_noticed() -> None:
    from dataclasses import replace

    release = dphist.publish(HISTOGRAM, epsilon=1, mechanism="laplace", partition_by="region")
    counts = release.counts.copy()
    counts[0, 2, 1] += 1
    with pytest.raises(VerificationError):
        replace(release, cells=DenseCells(counts)).verify()


@pytest.mark.slow
def test_workers_draw_their_own_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    domain = Domain([Ordinal("part", range(9)), Ordinal("x", range(500))])
    empty = Histogram(domain, np.zeros(domain.shape, dtype=np.int64))
    release = dphist.publish(empty, epsilon="1/1000", mechanism="laplace", partition_by="part", workers=2)
    release.verify()
    noise = release.counts
    # Equal rows, or rows shifted against each other, would mean noise used twice (chance below 10⁻¹⁰⁰).
    assert len({row.tobytes() for row in noise}) == 9
    assert np.abs(np.corrcoef(noise) - np.eye(9)).max() < 0.3


@pytest.mark.slow
def test_a_script_without_a_guard_may_publish_on_all_cores(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, dphist\n"
        "domain = dphist.Domain([dphist.Ordinal('p', range(5)), dphist.Ordinal('x', range(4))])\n"
        "histogram = dphist.Histogram(domain, np.ones((5, 4), dtype=np.int64))\n"
        "release = dphist.publish(histogram, epsilon=1, mechanism='laplace', partition_by='p', workers=2)\n"
        "release.verify(); print(len(release.transcript))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "5"), done.stderr


def test_a_process_that_dies_leaves_no_release_and_the_budget_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("adults", 1)
        with pytest.raises(EngineError, match="budget stays spent"):
            dphist.publish(
                HISTOGRAM, epsilon=1, mechanism="laplace", partition_by="region", workers=2,
                ledger=ledger, dataset="adults",
            )  # fmt: skip
        assert ledger.remaining("adults") == 0
        assert [entry.status for entry in ledger.entries("adults")] == ["opened"]


def test_a_mechanism_that_others_cannot_import_runs_here() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Homely:
        def estimate(self, data: PrivateCounts) -> Any:
            return Laplace().estimate(data)

    release = dphist.publish(HISTOGRAM, epsilon=1, mechanism=Homely(), partition_by="region", workers=2)
    release.verify()


def test_other_processes_find_modules_where_this_one_does(tmp_path: Path) -> None:
    """A file of the working folder that is called like a module was run in them: the budget was spent for nothing."""
    work, scripts = tmp_path / "work", tmp_path / "scripts"
    work.mkdir()
    scripts.mkdir()
    (work / "numbers.py").write_text("raise RuntimeError('not the module')")
    # What only the script's own folder has is found, too: a mechanism of one's own.
    (scripts / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from dphist.mechanisms import Laplace\n"
        "@dataclass(frozen=True, kw_only=True)\n"
        "class Mine:\n"
        "    def estimate(self, data):\n"
        "        return Laplace().estimate(data)\n"
    )
    script = scripts / "script.py"
    script.write_text(
        "import dphist, numpy as np\n"
        "from mine import Mine\n"
        "domain = dphist.Domain([dphist.Ordinal('a', range(6)), dphist.Nominal('s', ['x', 'y', 'z'])])\n"
        "counts = dphist.Histogram(domain, np.full(domain.shape, 9))\n"
        "for mechanism in ('laplace', Mine()):\n"
        "    made = dphist.publish(counts, epsilon=1, mechanism=mechanism, partition_by='s', workers=2)\n"
        "    print(made.counts.shape)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=work)
    assert done.stdout.split("\n")[:2] == ["(6, 3)", "(6, 3)"], done.stderr
