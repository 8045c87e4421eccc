"""Tumult Analytics: a session on Spark, a group-by with a key set, a count."""

from __future__ import annotations

import os
import shutil
import sys
from importlib.metadata import version
from typing import Any

spark: Any = None


def load() -> str:
    """Import Tumult and start Spark on all cores, with as many shuffle partitions as there are cores."""
    global spark
    os.environ["PYSPARK_PYTHON"] = sys.executable
    import tmlt.analytics  # noqa: F401 -- loading it is part of the start
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[*]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", str(os.cpu_count()))
        .config("spark.driver.memory", "6g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    return f"tmlt.analytics {version('tmlt.analytics')}, pyspark {spark.version}"


def publish(records: str, sizes: list[int], epsilon: str, out: str) -> None:
    """Count by every cell of the declared keys under add-or-remove-one-row, and have Spark write the table."""
    from tmlt.analytics import AddOneRow, KeySet, PureDPBudget, QueryBuilder, Session

    shutil.rmtree(out, ignore_errors=True)
    budget = PureDPBudget(float(epsilon))
    session = Session.from_dataframe(
        privacy_budget=budget,
        source_id="records",
        dataframe=spark.read.parquet(records),
        protected_change=AddOneRow(),
    )
    keys = KeySet.from_dict({f"a{axis}": list(range(size)) for axis, size in enumerate(sizes)})
    answer = session.evaluate(QueryBuilder("records").groupby(keys).count(), budget)
    answer.write.parquet(out)
