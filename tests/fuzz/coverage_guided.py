"""Coverage-guided fuzzing of the readers, for those who have hours: needs ``pip install atheris``.

    python tests/fuzz/coverage_guided.py question -max_total_time=3600
    python tests/fuzz/coverage_guided.py schema|mechanism|release …

Any exception that is not ours is a crash, and libFuzzer writes the input that caused it.
"""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

import atheris
import numpy as np

# Instrumented code cannot be compiled; kernels run as plain Python here.
os.environ["NUMBA_DISABLE_JIT"] = "1"

with atheris.instrument_imports(include=["dphist"]):
    from dphist.mechanisms.spec import parse
    from dphist.model.domain import Domain
    from dphist.release.language import read_question

import dphist
from dphist.errors import DphistError

DOMAIN = dphist.Domain(
    [
        dphist.Ordinal("age", range(10)),
        dphist.Ordinal("income", edges=[0, 10.5, 30]),
        dphist.Nominal("sex", ["F", "M"]),
    ]
)
FOLDER = Path(tempfile.mkdtemp())
RELEASE = dphist.publish(
    dphist.Histogram(DOMAIN, np.ones(DOMAIN.shape, dtype=np.int64)), epsilon=1, mechanism="tree"
)
RELEASE.save(FOLDER / "seed.parquet")
SEED = (FOLDER / "seed.parquet").read_bytes()


def release(given):
    raw = bytearray(SEED)
    for _ in range(given.ConsumeIntInRange(1, 8)):
        raw[given.ConsumeIntInRange(0, len(raw) - 1)] = given.ConsumeIntInRange(0, 255)
    (FOLDER / "bad.parquet").write_bytes(bytes(raw))
    dphist.load(FOLDER / "bad.parquet").verify()


TARGETS = {
    "question": lambda given: read_question(given.ConsumeUnicode(200), DOMAIN),
    "mechanism": lambda given: parse(given.ConsumeUnicode(100)),
    "schema": lambda given: Domain.from_toml(given.ConsumeUnicodeNoSurrogates(300)),
    "release": release,
}


def main():
    target = TARGETS[sys.argv.pop(1)]

    def one(data):
        with contextlib.suppress(DphistError):
            target(atheris.FuzzedDataProvider(data))

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
