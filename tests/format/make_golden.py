"""Makes the golden files, once: small releases of made-up data, one of each kind of model, and what they answer.

Files that are there hold format 1.0 for ever, so none is written again: ``python tests/format/make_golden.py`` adds
those that are missing, of a kind that is new.
"""

import json
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
from golden_answers import told

import dphist
from dphist.inference.estimate import Estimate
from dphist.inference.linear import DenseNoise
from dphist.mechanisms import (
    FPA,
    Blocks,
    Heap,
    Marginals,
    Mixture,
    Privelet,
    Residuals,
    Smooth,
)
from dphist.private.queries.prefixes import PrefixRoots, root_weights

HERE = Path(__file__).parent / "golden"
QUESTIONS = 12
AGE = dphist.Ordinal("age", range(18, 30))
PLACES = {"north": ["a", "b"], "south": {"coast": ["c"], "hills": ["d", "e"]}}
LINE = dphist.Domain([AGE])
DAYS = dphist.Domain(
    [dphist.Ordinal("day", dates=("2024-01-01", "2024-05-01", "1mo")), dphist.Ordinal("x", range(4))]
)
PLANE = dphist.Domain([dphist.Ordinal("x", edges=[0, 1, 2, 4, 8]), dphist.Ordinal("y", range(3), other=True)])
MAP = dphist.Domain([dphist.Nominal("place", PLACES), dphist.Ordinal("x", range(4))])
SEX = dphist.Nominal("r", ["f", "m"])
CUBE = dphist.Domain([dphist.Nominal("p", list("abc")), dphist.Ordinal("q", range(3)), SEX])
WIDE = dphist.Domain([dphist.Nominal(f"q{number}", list("abc")) for number in range(4)])
RANGES = dphist.Domain([SEX, dphist.Ordinal("x", range(16))])
RNG = np.random.default_rng(1848)


@dataclass(frozen=True)
class Dense:
    """Half of the way to prefix sums, undone: errors of any strategy that is written out (the file had another one)."""

    def estimate(self, data):
        noisy, weights = data.measure(PrefixRoots()), root_weights(data.size)
        back = np.add.outer(np.arange(data.size), -np.arange(data.size))
        inverse = np.linalg.inv(np.where(back >= 0, weights[back], 0).astype(np.float64))
        return Estimate(inverse @ noisy.values, DenseNoise(inverse @ inverse.T * float(noisy.variance)))


def drawn(domain, mean=9.0, heap=0):
    """Made-up counts that fall off along every attribute, and perhaps pile up in one cell."""
    fall = np.add.outer(
        np.zeros(1), sum(np.meshgrid(*(np.arange(n) / n for n in domain.shape), indexing="ij"))
    )[0]
    counts = RNG.poisson(mean * 3 * np.exp(-2 * fall))
    counts.reshape(-1)[domain.size // 2] += heap
    return dphist.Histogram(domain, counts)


def people(domain, rows):
    """Made-up records whose columns go together."""
    leaning = RNG.random(rows)
    columns = {}
    for attribute in domain.attributes:
        place = np.clip((leaning + RNG.normal(0, 0.25, rows)) * attribute.size, 0, attribute.size - 1).astype(
            int
        )
        columns[attribute.name] = np.array(attribute.labels)[place]
    return pd.DataFrame(columns)


def of(domain, mechanism=None, mean=9.0, heap=0, **paid):
    named = {} if mechanism is None else {"mechanism": mechanism}
    budget = {} if "rho" in paid else {"epsilon": 1}
    return dphist.publish(drawn(domain, mean, heap), **(budget | paid | named))


def keys(rows=190):
    return pd.DataFrame(
        {
            "key": RNG.choice(list("abcde"), rows, p=[0.4, 0.3, 0.2, 0.06, 0.04]),
            "s": RNG.integers(2, size=rows),
        }
    )


FOUND = dphist.Domain([dphist.Nominal("key", discover=True), dphist.Ordinal("s", range(2))])
COST = [dphist.Measure("cost", low=-4, high=10)]


def costs(rows=320):
    return pd.DataFrame({"age": RNG.integers(18, 30, rows), "cost": RNG.integers(-4, 11, rows)})


GOLDEN = {
    "independent": lambda: of(LINE, "gaussian", rho="1/4"),
    "selected": lambda: dphist.publish(keys(), FOUND, 1, delta="1/100", mechanism="laplace"),
    "noisy-cells": lambda: of(LINE, "isotonic"),
    "pieces": lambda: of(PLANE, "ahp"),
    "tree": lambda: of(LINE, "boost"),
    "leaves": lambda: of(PLANE, "dpcube"),
    "dense": lambda: of(LINE, Dense()),
    "groups": lambda: of(LINE, Blocks(group=Smooth("squared"), inner=Privelet(plain=()))),
    "group-bound": lambda: of(PLANE, "dawa"),
    "prefix-sums": lambda: of(LINE, "prefixsums", rho=1),
    "runs": lambda: of(DAYS, "structurefirst"),
    "wavelets": lambda: of(MAP, Privelet(plain=(), calibration="paper")),
    "waves": lambda: of(dphist.Domain([dphist.Ordinal("x", range(16))]), "fpa"),
    "waves-cosine": lambda: of(DAYS, FPA(basis="cosine", joint=False)),
    "predictive-cells": lambda: of(PLANE, "posterior"),
    "polished": lambda: of(DAYS, "posterior", mean=3).polished(nonnegative=True, integer=True),
    "parts": lambda: of(CUBE, "adaptivetree", partition_by="r"),
    "heap": lambda: of(DAYS, Heap(of="x", value=2), heap=5000),
    "tables-near": lambda: of(CUBE, Marginals(tables=((0, 1), (1, 2)), estimator="weighed"), mean=2),
    "tables-shrunk": lambda: of(
        CUBE, Marginals(tables=((0, 1, 2),), estimator="weighed"), mean=4, epsilon="1/20"
    ),
    "residuals": lambda: of(RANGES, Residuals(ranges=(1,)), mean=20, rho=1, workload="marginals:2"),
    "stages": lambda: of(CUBE, "added"),
    "published": lambda: dphist.publish(people(WIDE, 200), WIDE, 1, Mixture(classes=6)),
    "sparse": lambda: of(CUBE, "sparselaplace(threshold=9)"),
    "measures": lambda: dphist.publish(costs(), LINE, rho="1/8", measures=COST, mechanism="adaptivetree"),
}


def questions(shape):
    """The whole, three cells, and boxes of all sizes."""
    asked = [[[0] * len(shape), list(shape)]]
    while len(asked) < QUESTIONS:
        low = [int(RNG.integers(n)) for n in shape]
        high = [
            a + 1 if len(asked) < 4 else int(RNG.integers(a + 1, n + 1))
            for a, n in zip(low, shape, strict=True)
        ]
        # Most questions about many attributes are about few of them.
        for axis in np.flatnonzero(RNG.random(len(shape)) < (0.0 if len(asked) < 4 else 1 - 2 / len(shape))):
            low[axis], high[axis] = 0, shape[axis]
        asked.append([low, high])
    return asked


def main():
    """Make the files that are missing."""
    HERE.mkdir(exist_ok=True)
    book = HERE / "answers.json"
    answers = json.loads(book.read_text(encoding="utf-8")) if book.exists() else {}
    for name, make in GOLDEN.items():
        path = HERE / f"{name}.parquet"
        if path.exists() or name in answers:
            print(f"{name} is there, and stays as it is")
            continue
        make().save(path)
        release, digest = dphist.load(path), sha256(path.read_bytes()).hexdigest()
        asked = questions(release.domain.shape)
        answers[name] = {"digest": digest, "boxes": asked, **told(release, asked)}
    lines = (
        f"{json.dumps(name)}:{json.dumps(each, separators=(',', ':'))}" for name, each in answers.items()
    )
    book.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
