"""A byte of a file that is another: no process ends of it, no answer is another, no file verifies with it."""

import subprocess
import sys

import numpy as np
import pytest

import dphist

TRIES = 250
CHILD = """
import random, sys
from pathlib import Path
import dphist

path, whole = Path(sys.argv[1]), Path(sys.argv[1]).read_bytes()
draw = random.Random(sys.argv[1].rsplit("/", 1)[1])
wanted = repr(dphist.load(path).answer("age < 30"))
footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
# Which program wrote the file is for the file to say.
free = range(whole.rindex(b"parquet-cpp-arrow version"), whole.rindex(b"parquet-cpp-arrow version") + 40)
for number in range(int(sys.argv[2])):
    # Pages and footers alike, however long each is.
    place = draw.randrange(4, footer) if number % 2 else draw.randrange(footer, len(whole))
    damaged = bytearray(whole)
    damaged[place] ^= draw.randrange(1, 256)
    path.write_bytes(damaged)
    try:
        read = dphist.load(path)
        if repr(read.answer("age < 30")) != wanted:
            print("another answer with another byte at", place)
        read.verify()
    except dphist.errors.DphistError:
        continue
    if place not in free:
        print("verifies with another byte at", place)
"""


@pytest.mark.parametrize("mechanism", ["tree", "sparselaplace", "residuals"])
def test_a_byte_that_is_another_ends_no_process_and_verifies_nowhere(tmp_path, mechanism):
    domain = dphist.Domain([dphist.Ordinal("age", range(20, 40)), dphist.Nominal("sex", ["F", "M"])])
    path = tmp_path / f"{mechanism}.parquet"
    counts = dphist.Histogram(domain, np.arange(40).reshape(20, 2) * 9)
    dphist.publish(counts, epsilon=1, mechanism=mechanism).save(path)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, str(path), str(TRIES)], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
