"""Every public function, method and command, given inputs that Hypothesis draws from signatures and a grammar of junk.

Each call must answer, or raise one of our errors with words in it: no bare TypeError or ValueError, no hang, no death
of the process. Calls are made in processes of their own, with a limit of time for each and of memory for all. Findings
are told by kind and place, with the shortest input that was seen.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Annotated

from dphist_bench.fuzz import crew
from dphist_bench.fuzz.calling import Tally, every
from dphist_bench.measuring import Failure, Line

# Inputs of a target's first batch, the most of any, and the seconds that a batch should take.
_FIRST, _MOST, _SECONDS = 10, 2000, 2.0


def measure(
    *,
    quick: bool,
    inputs: Annotated[int, "calls in all"] = 1_000_000,
    seconds: Annotated[float, "when to stop earlier"] = 1e9,
    start: Annotated[int, "where to begin; another number draws other inputs"] = 1,
    only: Annotated[tuple[str, ...], "targets with one of these in their name"] = (),
    workers: int = 2,
) -> Iterator[Line]:
    """Call all targets in turn until there were as many inputs as asked for."""
    targets = [name for name in every() if not only or any(part in name for part in only)]
    inputs, workers = (3 * len(targets), 1) if quick else (inputs, workers)
    begun = time.monotonic()
    used, rates = dict.fromkeys(targets, 0.0), dict.fromkeys(targets, _FIRST / _SECONDS)
    asked = 0

    def jobs() -> Iterator[crew.Job]:
        # All targets get the same time, so that one which compiles or writes files does not take the others'.
        nonlocal asked
        number = 0
        while asked < inputs and time.monotonic() - begun < seconds:
            target = min(targets, key=lambda name: used[name])
            batch = max(1, min(int(_SECONDS * rates[target]), _MOST, inputs - asked))
            batch = min(batch, 3) if quick else batch
            # Reckoned with until it is known.
            used[target] += _SECONDS
            asked, number = asked + batch, number + 1
            yield target, batch, start * 1_000_000 + number

    found: dict[str, Tally] = {}
    for (target, batch, _), tally in crew.run(jobs(), workers):
        used[target] += tally.seconds - _SECONDS
        rates[target] = batch / max(tally.seconds, 1e-3)
        known = found.setdefault(target, Tally())
        for kind in set(tally.findings) - set(known.findings):
            # As soon as it is seen: a run takes its time.
            yield f"{target}: {kind}: {tally.findings[kind][1]}"
        known.add(tally)
    every_one = Tally()
    for target in targets:
        tally = found.get(target, Tally())
        every_one.add(tally)
        findings = sum(times for times, _ in tally.findings.values())
        yield {"target": target, "answered": tally.answered, "refused": tally.refused, "findings": findings}
    total = every_one.answered + every_one.refused + sum(times for times, _ in every_one.findings.values())
    yield (
        f"{len(targets)} targets, {total:,} inputs: {every_one.answered:,} answered, {every_one.refused:,} refused by "
        f"name, {(time.monotonic() - begun) / 60:.1f} minutes"
    )
    for target, tally in found.items():
        for kind, (times, example) in tally.findings.items():
            yield Failure(f"{target}: {times} × {kind}: {example}")
