"""Measuring this version, and setting it beside another: the tables and the rules of the game."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from dphist.errors import InputError
from dphist.release.atomic import atomic
from dphist_bench import results
from dphist_bench.judge import accuracy, cost, house
from dphist_bench.judge.accuracy import Reading
from dphist_bench.judge.cases import FRESH, TUNING, tasks
from dphist_bench.measuring import Failure, Line

# The rules of the game. Errors and widths beside the baseline's, as geometric means: each kind, and all of them.
KIND, ALL, SINGLE, WIDTH, CPU = 1.05, 1.03, 1.30, 1.05, 1.5
# Coverage of 95 % intervals: on average, the least ordinary case, the least of data made to mislead.
MEAN, ORDINARY, HOSTILE = (0.94, 0.98), 0.92, 0.85

Found = dict[str, Any]


def measure(
    *,
    quick: Annotated[bool, "one set of each kind of data, two draws, two jobs: for tests"],
    o: Annotated[
        Path | None, "write what was found into FILE.json; what was not measured stays in it"
    ] = None,
    beside: Annotated[
        Path | None, "a file of another version: print both, and fail where a rule is broken"
    ] = None,
    only: Literal["all", "accuracy", "cost", "house"] = "all",
    data: Annotated[
        Path | None, "folder of count vectors, planes and census records, measured as well"
    ] = None,
    tuning: Annotated[
        bool, "the numbers that constants may be chosen on, instead of those that judge"
    ] = False,
    workers: Annotated[int | None, "processes for accuracy; every core unless told"] = None,
    read: Annotated[Path | None, "measure nothing: read what was found before"] = None,
) -> Iterator[Line]:
    """Measure, write, and set beside the baseline."""
    found: Found = json.loads(read.read_text(encoding="utf-8")) if read is not None else {}
    if read is None:
        if o is not None and o.exists():
            found = json.loads(o.read_text(encoding="utf-8"))
        first = TUNING if tuning else FRESH
        if found.setdefault("first", first) != first:
            raise InputError(f"{o}: holds what other numbers gave; name another file")
        found["machine"] = results.machine()
        if only in ("all", "accuracy"):
            asked = list(tasks(first, data, quick=quick))
            found["accuracy"] = [each for some in accuracy.every(asked, workers) for each in some]
        if only in ("all", "cost"):
            found["cost"] = [list(each) for each in cost.costs(quick=quick)]
        if only in ("all", "house"):
            found["house"] = house.weigh()
        if o is not None:
            with atomic(o) as temporary:
                temporary.write_text(_dump(found), encoding="utf-8")
    before: Found = {} if beside is None else json.loads(beside.read_text(encoding="utf-8"))
    if before and before["first"] != found["first"]:
        raise InputError(f"{beside}: was measured on other numbers")
    if "accuracy" in found:
        yield from errors_beside(found["accuracy"], before.get("accuracy"))
        yield from coverage_beside(found["accuracy"], before.get("accuracy"))
    if "cost" in found:
        yield from costs_beside(found["cost"], before.get("cost"))
    if "house" in found:
        yield from house_beside(found["house"], before.get("house"))


def _dump(found: Found) -> str:
    """Readable, and a line a reading, so that what changed can be seen."""
    parts = []
    for name, value in found.items():
        if isinstance(value, list):
            rows = ",\n".join(json.dumps(each, ensure_ascii=False) for each in value)
            parts.append(f"{json.dumps(name)}: [\n{rows}\n]")
        else:
            parts.append(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


Key = tuple[str, ...]


def _key(reading: Reading) -> Key:
    return reading["sort"], reading["data"], reading["announced"], reading["currency"], reading["asked"]


def errors_beside(now: Sequence[Reading], before: Sequence[Reading] | None) -> Iterator[Line]:
    """Errors of each kind beside the baseline's: geometric means, the worst case, and the rules."""
    old = {_key(reading): reading["error"] for reading in before or ()}
    ratios = {
        _key(reading): (reading["error"] + 1e-9) / (old[_key(reading)] + 1e-9)
        for reading in now
        if _key(reading) in old
    }
    if not ratios:
        for sort, some in _grouped(now, lambda reading: (reading["sort"], reading["asked"])):
            yield {
                "data": sort[0],
                "asked": sort[1],
                "cases": len(some),
                "geometric mean error": _geometric([reading["error"] for reading in some]),
            }
        return
    yield "errors: today's over the baseline's"
    for sort, keys in _grouped(list(ratios), lambda key: (key[0], key[4], key[2] or "nothing", key[3])):
        worst = max(keys, key=ratios.__getitem__)
        yield {
            **dict(zip(("data", "asked", "announced", "currency"), sort, strict=True)),
            "cases": len(keys),
            "geometric mean": _geometric([ratios[key] for key in keys]),
            "worst": ratios[worst],
            "of": worst[1],
        }
    for sort, keys in _grouped(list(ratios), lambda key: (key[0],)):
        kind = _geometric([ratios[key] for key in keys])
        said = f"errors on {sort[0]}: {kind:.3f} of the baseline's"
        yield Failure(f"{said}, above {KIND}") if kind > KIND else said
    whole = _geometric(list(ratios.values()))
    said = f"errors of all kinds together: {whole:.3f} of the baseline's"
    yield Failure(f"{said}, above {ALL}") if whole > ALL else said
    far = sorted((key for key in ratios if ratios[key] > SINGLE), key=ratios.__getitem__, reverse=True)
    yield f"{len(far)} of {len(ratios)} cases are above {SINGLE}"
    yield from ({"case": ", ".join(key), "error over the baseline's": ratios[key]} for key in far[:40])


def coverage_beside(now: Sequence[Reading], before: Sequence[Reading] | None) -> Iterator[Line]:
    """How often 95 % intervals held, the least case, and widths beside the baseline's."""
    known = [reading for reading in now if reading["held"] is not None]
    old = {_key(reading): reading for reading in before or () if reading["held"] is not None}
    yield "95 % intervals"
    for sort, some in _grouped(known, lambda reading: (reading["sort"], reading["asked"])):
        least = min(some, key=lambda reading: reading["held"] or 0.0)
        both = [(reading, old[_key(reading)]) for reading in some if _key(reading) in old]
        yield {
            "data": sort[0],
            "asked": sort[1],
            "cases": len(some),
            "held": _mean([reading["held"] for reading in some]),
            "before": _mean([other["held"] for _, other in both]),
            "least": least["held"],
            "before, least": min((other["held"] or 0.0 for _, other in both), default=math.nan),
            "width": _geometric([_width(one) / _width(other) for one, other in both]),
            "measured": _mean([reading["measured"] for reading in some]),
            "least held of": f"{least['data']}, announced {least['announced'] or 'nothing'}, {least['currency']}",
        }
    for hostile, least in ((False, ORDINARY), (True, HOSTILE)):
        some = [reading for reading in known if (reading["sort"] == "hostile") is hostile]
        held = [reading["held"] or 0.0 for reading in some]
        what = "data made to mislead" if hostile else "ordinary data"
        if not some:
            continue
        low = sum(each < least for each in held)
        said = f"{what}: {_mean(held):.3f} on average, least {min(held):.3f}; {low} of {len(held)} cases below {least}"
        broken = low or not (hostile or MEAN[0] <= _mean(held) <= MEAN[1])
        yield Failure(said) if broken else said
    widths = [_width(reading) / _width(old[_key(reading)]) for reading in known if _key(reading) in old]
    if widths:
        said = f"widths: {_geometric(widths):.3f} of the baseline's"
        yield Failure(f"{said}, above {WIDTH}") if _geometric(widths) > WIDTH else said


def costs_beside(now: Sequence[Sequence[Any]], before: Sequence[Sequence[Any]] | None) -> Iterator[Line]:
    """CPU over the reference loop and megabytes of every job, beside the baseline's."""
    old = {name: (seconds, megabytes) for name, seconds, megabytes in before or ()}
    for name, seconds, megabytes in now:
        was = old.get(name, (math.nan, math.nan))
        ratio = seconds / was[0]
        yield {
            "job": name,
            "CPU": seconds,
            "CPU before": was[0],
            "ratio": ratio,
            "MB": megabytes,
            "MB before": was[1],
        }
        if ratio > CPU and "reference" not in name:
            yield Failure(f"{name}: {ratio:.2f} of the baseline's CPU, above {CPU}")


def house_beside(now: Mapping[str, float], before: Mapping[str, float] | None) -> Iterator[Line]:
    """What the house weighs, beside the baseline."""
    for name, value in now.items():
        yield {"house": name, "now": value, "before": (before or {}).get(name, math.nan)}


def _grouped(rows: Sequence[Any], by: Callable[[Any], Key]) -> Iterator[tuple[Key, list[Any]]]:
    groups: dict[Key, list[Any]] = {}
    for row in rows:
        groups.setdefault(by(row), []).append(row)
    yield from groups.items()


def _width(reading: Reading) -> float:
    return (reading["width"] or 0.0) + 0.5


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else math.nan


def _geometric(ratios: Sequence[float]) -> float:
    return math.exp(sum(math.log(max(ratio, 1e-9)) for ratio in ratios) / len(ratios)) if ratios else math.nan
