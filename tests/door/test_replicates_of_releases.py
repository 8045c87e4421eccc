"""Replicates of releases: the same from memory, a file and another process, and columns of what is exported."""

import subprocess
import sys

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from small_releases import RELEASES
from typer.testing import CliRunner

import dphist
from dphist.cli.commands import app
from dphist.errors import QueryError, TooLargeError
from dphist.release.exporting import export
from dphist.release.tables import public_seed

ANOTHER = """
import sys, dphist, numpy as np
for name in ("dphist.mechanisms", "dphist.private", "dphist.sources", "numba"):
    sys.modules[name] = None  # a reader needs none of them
np.save(sys.argv[2], dphist.load(sys.argv[1]).replicates(5))
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Some releases, and where their files are."""
    folder = tmp_path_factory.mktemp("replicates")
    found = {}
    for name in RELEASES:
        release = RELEASES[name]()
        object.__setattr__(release, "test", False)
        release.save(folder / f"{name}.parquet")
        found[name] = release, folder / f"{name}.parquet"
    return found


@pytest.mark.parametrize("name", RELEASES)
def test_a_file_gives_the_same_draws_as_memory(saved, name):
    release, path = saved[name]
    draws = release.replicates(5)
    assert len(draws) == 5
    assert draws[0].size == release.cells.numbers.size
    assert np.array_equal(dphist.load(path).replicates(5), draws, equal_nan=True)
    # A draw is the same whatever number of them is asked for.
    assert np.array_equal(release.replicates(2), draws[:2], equal_nan=True)
    spread = draws.std(axis=0)
    assert (spread[~np.isnan(spread)] > 0).any()


@pytest.mark.parametrize("name", ["line", "cube", "wide"])
def test_another_process_gives_the_same_and_needs_no_mechanism(saved, tmp_path, name):
    release, path = saved[name]
    subprocess.run([sys.executable, "-c", ANOTHER, str(path), str(tmp_path / "d.npy")], check=True)
    assert np.array_equal(np.load(tmp_path / "d.npy"), release.replicates(5), equal_nan=True)


@pytest.mark.parametrize("name", ["line", "wide"])
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
def test_an_export_has_them_as_columns_and_says_by_which_seed(saved, tmp_path, name, ending):
    release, path = saved[name]
    written = export(dphist.load(path), tmp_path / f"out{ending}", replicates=3)
    table = (pq.read_table if ending == ".parquet" else pyarrow.csv.read_csv)(written[0])
    assert table.column_names[-3:] == ["r1", "r2", "r3"]
    if name == "line":
        assert np.array_equal(np.stack(table.columns[-3:]), release.replicates(3))
    else:
        # Tables of one draw add up to one number of records.
        column, tables = table.column("r2").to_numpy(), np.array(table.column("table").to_pylist())
        assert len(set(tables)) == 8
        for each in set(tables):
            assert abs(column[tables == each].sum() - column[0]) < 0.01
    if ending == ".parquet":
        told = table.schema.metadata[b"replicates"].decode()
        assert public_seed(release).hex() in told
        assert told.startswith("3 draws of the whole table")


def test_what_was_not_measured_has_no_draws(saved, tmp_path):
    release, _ = saved["wide"]
    (path,) = export(release, tmp_path / "out.parquet", guesses=True, replicates=2)
    table = pq.read_table(path)
    measured, column = table.column("measured").to_numpy(), table.column("r1")
    assert not measured.all()
    assert column.is_null().to_numpy().tolist() == (~measured).tolist()


def test_tables_of_a_cube_are_drawn_as_tables(saved, tmp_path):
    release = saved["tables"][0]
    (path,) = export(release, tmp_path / "out.parquet", replicates=40)
    table = pq.read_table(path)
    draws = np.stack([table.column(f"r{number}").to_numpy() for number in range(1, 41)])
    off = np.sqrt(((draws - table.column("estimate").to_numpy()) ** 2).mean(axis=0))
    half = (table.column("high").to_numpy() - table.column("low").to_numpy()) / 2
    assert 0.5 < np.median(1.96 * off / half) < 1.6


def test_a_sheet_and_the_command_line_have_them(saved, tmp_path):
    path = saved["line"][1]
    out = tmp_path / "out.xlsx"
    export(dphist.load(path), out, replicates=2)
    assert out.exists()
    again = str(tmp_path / "out.parquet")
    done = CliRunner().invoke(app, ["export", str(path), "-o", again, "--replicates", "4"])
    assert done.exit_code == 0, done.output
    assert pq.read_schema(again).names[-4:] == ["r1", "r2", "r3", "r4"]
    with pytest.raises(QueryError, match="replicates"):
        CliRunner().invoke(
            app,
            ["export", str(path), "-o", str(tmp_path / "no.csv"), "--replicates", "0"],
            catch_exceptions=False,
        )
    assert not (tmp_path / "no.csv").exists()


@pytest.mark.parametrize("count", [0, -3, 1001, 2.5, "80", None, True])
def test_no_number_of_draws_is_refused_by_name(saved, count, tmp_path):
    release = saved["line"][0]
    with pytest.raises(QueryError, match="replicates: a whole number from 1 to 1,000"):
        release.replicates(count)
    if count is not None:
        with pytest.raises(QueryError, match="replicates: a whole number"):
            export(release, tmp_path / "no.parquet", replicates=count)
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_fit_in_memory_is_refused_with_what_to_do(saved, monkeypatch):
    monkeypatch.setattr("dphist.release.tables.available_memory", lambda: 1000)
    with pytest.raises(TooLargeError, match=r"replicates: 80 draws of 64 rows .* dphist export"):
        saved["line"][0].replicates()


def test_cells_that_reached_a_threshold_have_their_own_noise():
    domain = dphist.Domain([dphist.Ordinal("user", range(10**6)), dphist.Ordinal("item", range(10**6))])
    import pyarrow as pa

    records = pa.table({"user": [7] * 90 + [8] * 200, "item": [3] * 290})
    release = dphist.publish(records, domain, 1, "sparselaplace(threshold=40)", unattended=True)
    draws = release.replicates(400)
    assert np.abs(draws.std(axis=0) - np.sqrt(2)).max() < 0.25


def test_a_polished_release_is_off_by_what_polishing_moved_as_well(saved):
    release = saved["line"][0]
    polished = release.polished(integer=True)
    draws = polished.replicates(3)
    assert np.abs(draws.mean(axis=0) - release.counts).max() < 200
    assert not np.array_equal(draws, release.replicates(3))
