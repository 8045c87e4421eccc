"""How Spark's work is shared: the same rows bounded, and the same parts published, on one executor, two and four.

Every cluster is of this machine: a driver and executors of one core and one gigabyte, each a process of its own
(``local-cluster``). *jobs* are wall seconds and processor seconds of all its processes together, after a first run that
loads and compiles: the engine's own GROUP BY person, at most two rows a person in a thousand cells, and a release of
``parts`` parts of ten cells by `laplace`, whose runs happen on the executors. What is to be seen is that processor
time stays the same however many share it: then wall time falls with the cores that there are. *to the driver* is
what came back, in rows of an answer: cells, not people.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from dphist_bench.measuring import Failure, Line

_ROWS = """
COPY (
  SELECT CAST(hash(i, 5) % {people} AS BIGINT) AS person, CAST(hash(i) % 1000 AS INTEGER) AS cell,
    CAST(hash(i, 1) % {parts} AS INTEGER) AS part, CAST(hash(i, 2) % 10 AS INTEGER) AS level
  FROM range({rows}) AS r(i)
) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 100000)
"""
_SCRIPT = """
import json, os, sys, time
import dphist
from dphist.sources import count
from dphist.sources.databases.spark import local_session
from dphist_bench.timing import descendants, of_processes

path, executors, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
session = local_session(
    f"local-cluster[{executors},1,1024]", spark_driver_memory="1g", spark_executor_memory="1g",
    spark_sql_shuffle_partitions="16", spark_sql_files_maxPartitionBytes="4m",
    spark_executorEnv_PYTHONPATH=os.environ.get("PYTHONPATH", ""),
)
frame = session.read.parquet(path)
frame.createOrReplaceTempView("given")
line = dphist.Domain([dphist.Ordinal("cell", range(1000))])
cube = dphist.Domain([dphist.Ordinal("part", range(parts)), dphist.Ordinal("level", range(10))])
unit = dphist.Unit(rows=2, id="person")
asked = "SELECT count(*), max(n) FROM (SELECT person, count(*) AS n FROM given GROUP BY person)"
jobs = {
    "GROUP BY person": lambda: len(session.sql(asked).collect()),
    "two rows a person": lambda: int((count(frame, line, unit).counts > 0).sum()),
    "parts": lambda: len(dphist.publish(frame, cube, 1, "laplace", partition_by="part").transcript),
}
for name, job in jobs.items():
    job()
    me = os.getpid()
    begun, wall = of_processes([me, *descendants(me)]), time.monotonic()
    back = job()
    spent = of_processes([me, *descendants(me)]) - begun
    print("TOLD " + json.dumps([name, time.monotonic() - wall, spent, back]), flush=True)
session.stop()
"""


def shared(rows: int, parts: int, executors: Sequence[int]) -> Iterator[Line]:
    """Give wall and processor seconds, job by job and cluster by cluster."""
    import duckdb
    import pyspark

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        duckdb.connect().execute(_ROWS.format(path=path, rows=rows, people=max(1, rows // 5), parts=parts))
        environment = {
            **os.environ,
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": f"{folder}/work",
            "SPARK_LOCAL_DIRS": f"{folder}/scratch",
            "PYSPARK_PYTHON": sys.executable,
        }
        for number in executors:
            done = subprocess.run(
                [sys.executable, "-c", _SCRIPT, str(path), str(number), str(parts)],
                env=environment,
                cwd=folder,
                capture_output=True,
                text=True,
            )
            if done.returncode:
                yield Failure(f"{number} executors: {done.stderr.strip().splitlines()[-1:]}")
                continue
            for said in done.stdout.splitlines():
                if said.startswith("TOLD "):
                    name, wall, spent, back = json.loads(said.removeprefix("TOLD "))
                    title = f"{parts:,} parts" if name == "parts" else name
                    yield {
                        "executors": number,
                        "job": title,
                        "rows": rows,
                        "wall s": wall,
                        "CPU s": spent,
                        "to the driver": back,
                    }
