"""Ctrl+C while a file is read ends the command: nothing is left that other threads wait for."""

import subprocess
import sys
import textwrap

import pytest


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl"])
def test_nothing_is_loaded_while_duckdb_computes(tmp_path, name):
    """DuckDB dropped an interrupt of its own imports, which left Python's lock held: the command hung for ever."""
    line, head = ("{}\n", "x\n") if name == "x.csv" else ('{{"x": {}}}\n', "")
    (tmp_path / name).write_text(head + "".join(line.format(i % 8) for i in range(20_000)))
    watched = textwrap.dedent("""
        import sys, threading
        import dphist
        from dphist.sources import count
        from dphist.sources.duck.duck import Duck

        loaded, computing, run = [], [], Duck._run

        def listen(event, arguments):
            if event == "import" and (computing or threading.current_thread() is not threading.main_thread()):
                loaded.append(arguments[0])

        def watched(self, *asked):
            computing.append(asked)
            try:
                return run(self, *asked)
            finally:
                computing.pop()

        Duck._run = watched
        sys.addaudithook(listen)
        print(count(sys.argv[1], dphist.Domain([dphist.Ordinal("x", range(8))])).counts.sum(), loaded)
    """)
    found = subprocess.run(
        [sys.executable, "-c", watched, str(tmp_path / name)], capture_output=True, text=True, check=True
    )
    assert found.stdout == "20000 []\n"
