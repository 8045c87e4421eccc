"""Small releases of `auto`, one of each kind that it makes."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import dphist
from dphist.release.held import stamped
from dphist.release.writing import HOW

LINE = dphist.Domain([dphist.Ordinal("age", range(64))])
PLANE = dphist.Domain([dphist.Ordinal("x", range(20)), dphist.Ordinal("y", range(20))])
CUBE = dphist.Domain([dphist.Nominal(name, list("abcd")) for name in "pqr"])
MANY = [f"q{number}" for number in range(7)]
MARKS = list("abcdefghijklmnopqr")
WIDE = dphist.Domain([dphist.Nominal(name, MARKS) for name in MANY])


def counts(domain):
    """The same small counts, whatever the domain."""
    return dphist.Histogram(domain, np.arange(domain.size).reshape(domain.shape) % 7 * 5)


def answers(rows):
    """Records of seven columns that depend on each other."""
    place = np.arange(rows)
    return pd.DataFrame(
        {name: np.array(MARKS)[place // (1 + at % 3) % len(MARKS)] for at, name in enumerate(MANY)}
    )


def saved(release, path, forge=lambda story: None):
    """The release written to a file and read again, after a forger had its description."""
    release.save(path)
    table = pq.read_table(path)
    metadata = dict(table.schema.metadata)
    story = json.loads(metadata[b"dphist"])
    forge(story)
    metadata[b"dphist"] = json.dumps(story).encode()
    metadata.pop(b"pandas", None)
    pq.write_table(table.replace_schema_metadata(stamped(metadata)), path, write_statistics=False, **HOW)
    return dphist.load(path)


RELEASES = {
    "line": lambda: dphist.publish(counts(LINE), epsilon=1),
    "cells": lambda: dphist.publish(counts(LINE), epsilon=1, workload="cells"),
    "guaranteed": lambda: dphist.publish(counts(LINE), epsilon=1, mechanism="auto(guaranteed=true)"),
    "curve": lambda: dphist.publish(counts(LINE), rho="1/2", workload="prefixes"),
    "plane": lambda: dphist.publish(counts(PLANE), epsilon=1),
    "tables": lambda: dphist.publish(counts(CUBE), epsilon=1, workload="marginals:2"),
    "cube": lambda: dphist.publish(counts(CUBE), epsilon=1),
    "currency": lambda: dphist.publish(counts(CUBE), epsilon=1, delta="1e-9"),
    "parts": lambda: dphist.publish(counts(CUBE), epsilon=1, partition_by="p"),
    "wide": lambda: dphist.publish(answers(30), WIDE, epsilon=1),
}
