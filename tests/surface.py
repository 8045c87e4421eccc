"""What is public: functions, classes, their methods, and commands, each found by looking and not by a list."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import cache
from types import FunctionType
from typing import Any

# What is not called, and why.
LEFT_OUT = {
    "web.serve": "starts a server; its application is made by web.create_app",
    "Ledger": "opened by Ledger.open; its constructor takes what only a store gives",
    "Ledger.close": "ends what the other calls share",
    "testing.RecordingNoise": "stands behind the gate, which alone calls it, with numbers of its own",
    "audit.audit": "runs a mechanism tens of thousands of times",
    "testing.check_mechanism": "runs a mechanism hundreds of times",
}
# Records that only our own code fills in; they hold what they are given, and are read through what makes them.
FILLED = {
    "Answer", "Answers", "Release", "audit.Pair", "audit.Report", "testing.Draw", "planning.Forecast",
    "planning.Row", "release.DenseCells", "release.SparseCells", "release.Guarantee", "release.Projection",
    "release.TableCells", "report.Cuts", "uses.Blocking", "uses.Cube", "mechanisms.Entry",
}  # fmt: skip
# Methods that one of our classes calls on another: no door, and no promise to a caller from outside.
INNER = {"Release.remade", "Release.with_receipt"}


def names() -> dict[str, Any]:
    """Name every public function and class; a module of the face stands for what it lists."""
    import dphist
    from dphist import planning, release, report, uses, web
    from dphist.mechanisms import CLASSES, Entry

    found: dict[str, Any] = {"mechanisms.Entry": Entry}
    for name in dphist.__all__:
        value = getattr(dphist, name)
        if callable(value):
            found[name] = value
    rooms = {
        "audit": dphist.audit, "testing": dphist.testing, "planning": planning, "release": release,
        "report": report, "uses": uses, "web": web,
    }  # fmt: skip
    for room, module in rooms.items():
        for name in module.__all__:
            if name not in found and callable(getattr(module, name)):
                found[f"{room}.{name}"] = getattr(module, name)
    for name in CLASSES:
        found[f"mechanisms.{name}"] = getattr(dphist.mechanisms, name)
    # A protocol is described by its methods; nobody builds one.
    return {name: value for name, value in found.items() if not getattr(value, "_is_protocol", False)}


def methods(cls: type) -> Iterator[tuple[str, Any]]:
    """Public methods of a class, and of the parts of it that live in files of their own."""
    seen = set()
    for each in cls.__mro__:
        if not each.__module__.startswith("dphist"):
            continue
        for name, value in vars(each).items():
            inner = value.__func__ if isinstance(value, classmethod | staticmethod) else value
            if not name.startswith("_") and isinstance(inner, FunctionType) and name not in seen:
                seen.add(name)
                yield name, value


@cache
def targets() -> dict[str, tuple[Any, type | None]]:
    """Everything that is called: by name, the callable, and the class whose values it is a method of."""
    found: dict[str, tuple[Any, type | None]] = {}
    for name, value in names().items():
        if name not in LEFT_OUT and name not in FILLED:
            found[name] = value, None
        if not inspect.isclass(value) or name.startswith(("mechanisms.", "testing.", "release.", "audit.")):
            continue
        for method, function in methods(value):
            label = f"{name}.{method}"
            if label in LEFT_OUT or label in INNER:
                continue
            if isinstance(function, classmethod | staticmethod):
                found[label] = getattr(value, method), None
            else:
                found[label] = function, value
    return found
