"""Measuring beside other libraries: what a process reports, what is skipped and why, what the claims make of it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from dphist_bench.cases import Case, Reading
from dphist_bench.peers import outside, ways
from dphist_bench.peers.__main__ import REQUIREMENTS
from dphist_bench.peers.jobs import CLAIMS_COST, CLAIMS_ERROR, Versions
from dphist_bench.peers.outside import PEERS, Peer, Skipped
from dphist_bench.results import Results, Row


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """Make a peer out of a piece of code, as if it were another library with a Python of its own."""

    def make(code, sizes=(4,), limit=30):
        script = tmp_path / "ways.py"
        body = "".join(f"    {line}\n" for line in code.splitlines())
        script.write_text("class Stranger:\n    def load():\n        return 'stranger 7'\n\n" + body)
        monkeypatch.setitem(PEERS, "stranger", Peer("Stranger", "stranger", file=script))
        return outside.run("stranger", "nothing", sizes, "1", [str(tmp_path / "out.npy")], limit=limit)

    return make


def test_a_run_reports_the_job_apart_from_the_start(stranger, tmp_path):
    cost = stranger(
        "def publish(records, sizes, epsilon, out):\n"
        "    import time\n"
        "    while time.process_time() < 0.4:\n"
        "        pass\n"
        "    block = bytearray(80_000_000)\n"
        "    open(out, 'wb').write(b'done')\n"
    )
    assert (tmp_path / "out.npy").read_bytes() == b"done"
    assert cost.cpu >= 0.4
    assert 0.1 < cost.job_cpu < cost.cpu
    assert cost.wall > cost.job_wall > 0
    assert cost.megabytes > 80
    assert cost.version.startswith("stranger 7, Python 3")


def test_memory_is_that_of_the_job_and_not_of_who_started_it(stranger):
    ballast = np.ones(20_000_000)
    cost = stranger("def publish(*_):\n    pass\n")
    assert 1 < cost.megabytes < 80 < ballast.nbytes / 2**20


def test_a_failure_is_told_without_its_words(stranger):
    with pytest.raises(Skipped, match=r"^failed: ValueError$"):
        stranger("def publish(*_):\n    raise ValueError('row 7 of /some/path')\n")


def test_a_job_that_does_not_end_is_ended(stranger):
    with pytest.raises(Skipped, match="not done in 1 s"):
        stranger("def publish(*_):\n    import time\n    time.sleep(600)\n", limit=1)


def test_a_peer_is_found_in_its_environment_or_here_or_skipped(tmp_path, monkeypatch):
    python = tmp_path / "numpy" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    monkeypatch.setenv(outside.FOLDER, str(tmp_path))
    assert outside.interpreter(Peer("Numpy", "numpy", "numpy")) == str(python)
    assert outside.interpreter(Peer("Numpy", "numpy", "elsewhere")) == sys.executable
    with pytest.raises(Skipped, match="no_such_package is not installed"):
        outside.interpreter(Peer("It", "no_such_package", "elsewhere"))


def test_every_environment_has_its_requirements_and_every_peer_its_way():
    assert {peer.environment for peer in PEERS.values()} - {""} == set(REQUIREMENTS)
    for peer in PEERS.values():
        way = getattr(ways, peer.way)
        assert callable(way.load)
        assert callable(way.publish)


def test_our_own_job_releases_all_cells_of_the_records():
    sizes = (8, 4)
    records, truth = outside.records(500, sizes), outside.truth(500, sizes)
    out = outside.out_of("dphist, laplace")
    cost = outside.run("dphist, laplace", records, sizes, "1000", [out])
    # At ε = 1000 every one of 32 draws is zero, but for a chance below 1e-400.
    np.testing.assert_array_equal(outside.released("dphist, laplace", out, sizes), truth)
    assert truth.sum() == 500
    assert 0 < cost.job_cpu < cost.cpu


def test_tables_of_others_are_read_cell_by_cell(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    np.save(tmp_path / "out0.npy", np.arange(6))
    read = outside.released("diffprivlib", str(tmp_path / "out0.npy"), (2, 3))
    np.testing.assert_array_equal(read, [[0, 1, 2], [3, 4, 5]])
    table = pa.table({"a0": [1, 0, 1], "a1": [2, 0, 0], "len": [5, 7, -1]})
    pq.write_table(table, tmp_path / "out0.parquet")
    read = outside.released("OpenDP, Polars", str(tmp_path / "out0.parquet"), (2, 3))
    np.testing.assert_array_equal(np.isnan(read), [[False, True, True], [False, True, False]])
    assert (read[1, 2], read[0, 0], read[1, 0]) == (5, 7, -1)


def _results(measure, values):
    rows = [
        Row(Case(data, method, "1", x), 0, Reading(measure, value))
        for (data, method, x), value in values.items()
    ]
    rows.append(Row(Case("10 rows", "absent", "1", 4.0), 0, Reading("skipped: not installed", 1.0)))
    return Results(rows, {})


def test_claims_hold_only_where_every_comparison_does():
    ours, theirs = ("10 rows", "dphist, laplace", 4.0), ("10 rows", "diffprivlib", 4.0)
    won, lost = _results("CPU s", {ours: 1.0, theirs: 3.0}), _results("CPU s", {ours: 1.0, theirs: 0.5})
    assert CLAIMS_COST[0].check(won).holds
    assert not CLAIMS_COST[0].check(lost).holds
    assert "behind diffprivlib at 10 rows, 4 cells (0.5 ×)" in CLAIMS_COST[0].check(lost).figures
    assert not CLAIMS_COST[0].check(_results("CPU s", {ours: 1.0})).holds, "without peers nothing is shown"
    auto = ("10 rows", "dphist, auto for cells", 4.0)
    assert CLAIMS_ERROR[0].check(_results("RMSE of cells", {auto: 1.0, theirs: 2.0})).holds
    assert not CLAIMS_ERROR[0].check(_results("RMSE of cells", {auto: 1.0, theirs: 0.9})).holds


def test_versions_say_why_a_library_was_not_measured(tmp_path):
    found = _results("CPU s", {("10 rows", "dphist, laplace", 4.0): 2.0})
    assert "- absent: skipped: not installed" in Versions(title="V", measure="CPU s").markdown(
        found, tmp_path, "v"
    )
