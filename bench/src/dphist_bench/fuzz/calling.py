"""One input after another to one target, and what came of it: an answer, an error of ours, or a finding."""

from __future__ import annotations

import inspect
import itertools
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from dphist.errors import DphistError
from dphist.publishing.door import publish
from dphist_bench.fuzz import grammar, pool, surface, words

_SECONDS = 90.0


class TooSlow(BaseException):
    """Not an Exception, so that nothing on the way swallows it."""


@dataclass
class Tally:
    """What came of the inputs of one target."""

    answered: int = 0
    refused: int = 0
    #: Of the processor's time.
    seconds: float = 0.0
    #: By kind and place of an error that is not ours: how often, and the shortest arguments that caused it.
    findings: dict[str, tuple[int, str]] = field(default_factory=dict)

    def note(self, kind: str, told: str) -> None:
        """Count a finding and keep the shortest example of it."""
        times, before = self.findings.get(kind, (0, told))
        self.findings[kind] = times + 1, min(before, told, key=len)

    def add(self, other: Tally) -> None:
        """Take in another batch."""
        self.answered += other.answered
        self.refused += other.refused
        self.seconds += other.seconds
        for kind, (times, told) in other.findings.items():
            self.note(kind, told)
            self.findings[kind] = self.findings[kind][0] + times - 1, self.findings[kind][1]


def every() -> list[str]:
    """Name all targets: functions, methods, and the command line's commands."""
    return [*surface.targets(), *words.commands()]


def attack(target: str, inputs: int, start: int, before: Callable[[Any], None] = lambda _: None) -> Tally:
    """Give a target so many inputs, and each to ``before`` first; the same start draws the same again."""
    found = Tally()
    drawn, call = words.attack(target) if target in words.commands() else _arguments(target, start)

    @seed(start)
    @settings(
        max_examples=inputs, deadline=None, database=None, phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(drawn)
    def run(given_arguments: Any) -> None:
        before(given_arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _try(call, given_arguments, found)

    begun = time.process_time()
    run()
    found.seconds = time.process_time() - begun
    return found


def _try(call: Callable[[Any], Any], given_arguments: Any, found: Tally) -> None:
    try:
        with soon():
            call(given_arguments)
    except DphistError as error:
        found.refused += 1
        if not str(error).strip():
            found.note("an error without words", shown(given_arguments))
    except TooSlow:
        found.note(f"took more than {_SECONDS:g} s", shown(given_arguments))
    except Exception as error:
        told = f"{str(error)[:80]!r} for {shown(given_arguments)}"
        found.note(f"{type(error).__name__} at {_place(error)}", told)
    else:
        found.answered += 1


def _arguments(target: str, start: int) -> tuple[st.SearchStrategy[Any], Callable[[Any], Any]]:
    function, owner = surface.targets()[target]
    kinds = dict(inspect.signature(function).parameters)
    takes = dict(kinds)
    owned = takes.pop(next(iter(takes))).name if owner is not None else ""
    histogram = pool.of("Histogram")[start % 2]

    @st.composite
    def drawn(draw: st.DrawFn) -> dict[str, Any]:
        given_arguments = {owned: draw(st.sampled_from(pool.of(owner.__name__)))} if owner is not None else {}
        # None, one or two of the arguments are odd, or all.
        many = draw(st.sampled_from([0, 1, 1, 1, 2, len(takes)]))
        odd = set(draw(st.permutations(list(takes)))[:many])
        for name, parameter in takes.items():
            if parameter.default is parameter.empty or name in odd or draw(st.booleans()):
                given_arguments[name] = draw(strategies[name][name in odd])
        return given_arguments

    strategies = {
        name: {odd: _one(parameter, function, odd=odd) for odd in (False, True)}
        for name, parameter in takes.items()
    }

    def call(values: dict[str, Any]) -> None:
        answer = _called(function, kinds, values)
        if inspect.isgenerator(answer):
            list(itertools.islice(answer, 5))
        if target.startswith("mechanisms.") and callable(getattr(answer, "estimate", None)):
            publish(histogram, epsilon=1, mechanism=answer)
        elif answer is not None and not isinstance(answer, str | bytes):
            repr(answer)

    return drawn(), call


def _one(parameter: inspect.Parameter, function: Any, *, odd: bool) -> st.SearchStrategy[Any]:
    values = grammar.argument(parameter, function, odd=odd)
    if parameter.kind is parameter.VAR_POSITIONAL:
        return st.lists(values, max_size=3)
    if parameter.kind is parameter.VAR_KEYWORD:
        return st.dictionaries(st.sampled_from(["age", "sex", "day", "x", "target"]), values, max_size=3)
    return values


def _called(function: Any, kinds: dict[str, inspect.Parameter], values: dict[str, Any]) -> Any:
    """Call by names, and by position where names are not taken or more positions follow."""
    starred = any(each.kind is each.VAR_POSITIONAL for each in kinds.values())
    first: list[Any] = []
    named: dict[str, Any] = {}
    for name, value in values.items():
        kind = kinds[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            first += value
        elif kind is inspect.Parameter.VAR_KEYWORD:
            named |= {key: each for key, each in value.items() if key not in kinds}
        elif kind is inspect.Parameter.POSITIONAL_ONLY or (
            starred and kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        ):
            first.append(value)
        else:
            named[name] = value
    return function(*first, **named)


def _place(error: BaseException) -> str:
    """The last line of ours that an error passed."""
    ours = [
        f"{frame.filename.rsplit('/dphist/', 1)[-1]}:{frame.name}"
        for frame in traceback.extract_tb(error.__traceback__)
        if "/dphist/" in frame.filename
    ]
    return ours[-1] if ours else "the call"


def shown(value: Any) -> str:
    """Arguments as one could type them, cut short."""
    try:
        return repr(value)[:400]
    except Exception as error:
        return f"arguments that cannot be shown ({type(error).__name__})"


@contextmanager
def soon() -> Iterator[None]:
    """Stop a call that keeps the processor too long; a busy machine does not look like a hang."""

    def stop(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
