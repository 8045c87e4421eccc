"""Machine code of an earlier process, linked without numba: the same bits, and nothing made for anything else."""

import itertools
import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from dphist.kernels import machine

_GIVEN = """
import json, sys
import numpy as np
from dphist.kernels import compile as compiling, machine
from dphist.kernels.predictive.splits import least_squares_splits as kernel
left = np.array([1, 3, -1, -1, -1])
best, spread = np.array([9.0, 5.0, 4.5, 1.0, 3.7]), np.array([1.0, 2.0, 3.0, 1.5, 0.7])
"""

_COMPILE = (
    _GIVEN
    + """
compiling.compile_at_once()
print(json.dumps([each.tobytes().hex() for each in kernel(left, best, spread)]))
"""
)

_LINK = (
    _GIVEN
    + """
compiling._spare = compiling._LINKING = 0.0
found = kernel(left, best, spread)
alone = "numba" not in sys.modules and machine.loaded()
try:
    kernel(left, best, np.zeros(5))
    said = ""
except ZeroDivisionError as error:
    said = str(error)
# What the compiler does afterwards is not disturbed.
compiling.compile_at_once()
again = kernel.compiled()(left, best, spread)
same = all(np.array_equal(one, other) for one, other in zip(found, again))
for _ in range(1000):
    found = kernel(left, best, spread)
print(json.dumps([alone, said, same, [each.tobytes().hex() for each in found]]))
"""
)


def _run(text, folder):
    run = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder)},
    )
    return json.loads(run.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="object code is read on Linux")
def test_what_was_compiled_is_linked_without_the_compiler(tmp_path, monkeypatch):
    expected = _run(_COMPILE, tmp_path)
    (kept,) = tmp_path.rglob("*.machine")
    assert _run(_LINK, tmp_path) == [True, "division by zero", True, expected]

    from dphist.kernels.predictive.splits import least_squares_splits

    kernel: Any = least_squares_splits
    asked = machine.signature((np.arange(5), np.zeros(5), np.zeros(5)))
    assert asked is not None
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert machine.linked(kernel.function, asked) is not None
    assert machine.linked(kernel.function, asked + " f") is None
    # For another machine or other sources, damaged, cut short, or in need of what is not here: nothing is linked.
    whole = kept.read_bytes()
    story, code = whole.split(b"\n", 1)
    told = json.loads(story)
    damaged = [
        whole[:-9],
        story,
        b"",
        b"[]\n" + code,
        story + b"\n" + code[:900] + bytes([code[900] ^ 1]) + code[901:],
        *(
            json.dumps(told | change).encode() + b"\n" + code
            for change in (
                {"made_for": "somebody"},
                {"made_from": "nothing"},
                {"needs": ["no_such_symbol"]},
                {"entry": "nowhere"},
            )
        ),
    ]
    for contents in damaged:
        kept.write_bytes(contents)
        assert machine.linked(kernel.function, asked) is None
    kept.write_bytes(whole)
    # Nor what somebody else has written, or may have.
    for place in (kept, kept.parent):
        mode = place.stat().st_mode
        place.chmod(0o777)
        assert machine.linked(kernel.function, asked) is None
        place.chmod(mode)
        assert machine.linked(kernel.function, asked) is not None
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: kept.stat().st_uid + 1)
        assert (machine.linked(kernel.function, asked) is None) == (kept.stat().st_uid != 0)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert machine.linked(kernel.function, asked) is None


def test_calls_are_told_apart_as_numba_tells_them():
    from numba import typeof

    square = np.zeros((3, 3))
    frozen = np.zeros(3)
    frozen.setflags(write=False)
    given: list[Any] = [
        1, -(1 << 63), np.int64(4), 0.5, np.float64(2), True, np.bool_(False), np.zeros(3), frozen, np.zeros(6)[::2],
        np.zeros(0), square, square.T, np.asfortranarray(np.zeros((2, 3))), square[:2, :2], np.zeros((1, 3))[:, ::2],
        np.zeros(3, dtype=np.int32), np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.uint8), np.zeros(3, dtype=bool),
        np.zeros(3, dtype=np.float32),
    ]  # fmt: skip
    for one, other in itertools.combinations(given, 2):
        alike = machine.signature((one,)) == machine.signature((other,))
        assert alike == (typeof(one) == typeof(other)), (one, other)
    for unknown in (
        "a",
        None,
        1 << 63,
        (1, 2),
        np.float32(1),
        np.zeros(3, dtype=">f8"),
        np.zeros(2, dtype="U1"),
    ):
        assert machine.signature((unknown,)) is None


def test_a_twin_that_took_as_long_as_compiling_gives_way(tmp_path, monkeypatch):
    from dphist.kernels.predictive.splits import infer_splits

    kernel: Any = infer_splits
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("atexit.register", lambda function: function)
    processes = []
    for _ in range(9):
        monkeypatch.setattr(machine, "_heat", {})
        monkeypatch.setattr(machine, "_added", {})
        # Short calls are nobody's loss.
        assert not machine.worn(kernel.function, 9_000.0)
        processes.append(machine.worn(kernel.function, 260_000.0))
        machine._remember()
    assert processes == [False] * 7 + [True] * 2
    # Of other sources it says nothing, and what cannot be read is no reason to compile.
    monkeypatch.setattr(machine, "sources", lambda: "others")
    for contents in (None, b"\xff\xfe", b"one two\n"):
        if contents is not None:
            (tmp_path / "dphist" / "heat.txt").write_bytes(contents)
        monkeypatch.setattr(machine, "_heat", {})
        monkeypatch.setattr(machine, "_added", {})
        assert not machine.worn(kernel.function, 260_000.0)


def test_no_file_tells_how_long_records_took(tmp_path, monkeypatch):
    """How long kernels that sort or add up records take follows from how many there are."""
    from dphist.kernels.grouping import largest_label
    from dphist.kernels.pairs import side_by_side
    from dphist.kernels.predictive.splits import infer_splits

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("atexit.register", lambda function: function)
    monkeypatch.setattr(machine, "_heat", {})
    monkeypatch.setattr(machine, "_added", {})
    of_records = [sys.modules[each.__module__] for each in (largest_label, side_by_side)]
    kernels = [
        kernel for module in of_records for kernel in vars(module).values() if hasattr(kernel, "function")
    ]
    assert len(kernels) >= 2
    for kernel in kernels:
        assert not machine.worn(kernel.function, 1e9)
    assert machine._added == {}
    kernel_of_answers: Any = infer_splits
    assert machine.worn(kernel_of_answers.function, 1e9)
