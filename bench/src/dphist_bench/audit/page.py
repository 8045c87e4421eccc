"""The page that says what a campaign found, for people who want to check before they trust."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dphist_bench.audit.campaign import ALPHA, Trial, number, refuted
from dphist_bench.views import table

# A name, its fault, and how many runs a side refuted it (None: not caught).
Caught = tuple[str, str, int | None]


def results_page(trials: Sequence[Trial], *, command: str, date: str, caught: Sequence[Caught] = ()) -> str:
    """Write a campaign's results as Markdown, with what the attack would have caught and what it cannot show."""
    fallen = refuted(trials)
    names = ", ".join(sorted({trial.mechanism for trial in fallen}))
    shapes = sorted({trial.shape for trial in trials}, key=lambda shape: (len(shape), shape))
    parts = [
        _HEAD.format(
            date=date,
            command=command,
            trials=len(trials),
            mechanisms=len({trial.mechanism for trial in trials}),
            runs=2 * sum(trial.runs for trial in trials),
            verdict=f"Refuted: {names}." if fallen else "Every claim stands.",
            alpha=ALPHA,
            tables=" and ".join("×".join(map(str, shape)) for shape in shapes),
        ),
        "\n".join(_table(trials, fallen)),
        "\n".join(["## Limits\n", *_found_limits(trials), _LIMITS]),
        "\n".join(_strongest(trials)),
        *(["\n".join(_zoo(caught))] if caught else []),
    ]
    return "\n\n".join(parts) + "\n"


_HEAD = """# Audit results

Made on {date} by `{command}`. {trials:,} trials of {mechanisms} mechanisms, {runs:,} runs.

**{verdict}** Trials of a round are judged together by Holm's rule; over all rounds a true claim is
refuted with probability at most {alpha:g}. An audit refutes claims; it does not prove them.

Tables of {tables} cells; every trial first searches for neighbours on which the mechanism tells most.
Each run's answers, as a release publishes them, are ranked by how much likelier they are on one neighbour:
by the noise that is claimed, and by what earlier runs taught. Then the audit bets that likely answers are
likelier than ε allows. Who bets against a true claim makes a thousandfold of their money once in a thousand
times at most, whenever they stop.

- `asks`: how many noisy partitions, choices and sets of counts a run let out.
- `runs a side`: of all trials of the mechanism together.
- `ε ≥`: the largest lower bound of its trials at that ε, each right with 99.9 % by itself.
- `most`: the largest loss of a run at ε = 1, computed from the claimed noise. Above ε it would refute by
  itself. Well below ε, the mechanism leaves part of its budget unused on these neighbours, and no attack can
  see more. `+` stands for a partition, whose loss has no formula; `–` where nothing has.
- `smallest p`: over all its trials."""
_LIMITS = """- Small tables of few shapes, one record of difference, no workload, and options as they are by default (or
  as named). Faults that need large domains, other options or other types of attribute are out of reach.
- Answers are looked at, not what is computed from them afterwards. That this is all there is to see rests on
  the replay of every mechanism from its answers, which the conformance tests check.
- The loss by formula takes the sampler at its word. That noise has its law is tested by itself.
- A fault that was not thought of may be none of those below.
- Trials are of the code as it was when each was made, within one campaign but not within one minute.
- Time, memory, logs and messages are other attacks; the threat model says which tests try them."""


def _table(trials: Sequence[Trial], fallen: Sequence[Trial]) -> list[str]:
    epsilons = sorted({trial.epsilon for trial in trials}, key=number)
    bounds = [f"ε ≥ at {each}" for each in epsilons]
    heads = ["mechanism", "asks", "trials", "runs a side", *bounds, "most", "smallest p", "verdict"]
    rows = []
    for name in sorted({trial.mechanism for trial in trials}):
        own = [trial for trial in trials if trial.mechanism == name]
        found = [_strongest_bound(own, epsilon) for epsilon in epsilons]
        rows.append(
            [
                *(f"`{name}`", _asked(own), str(len(own)), f"{sum(trial.runs for trial in own):,}"),
                *("–" if bound is None else f"{bound:.2f}" for bound in found),
                *(_most(own), f"{min(trial.chance for trial in own):.2g}"),
                "**refuted**" if any(trial in fallen for trial in own) else "stands",
            ]
        )
    return table(heads, rows)


def _asked(own: Sequence[Trial]) -> str:
    """How many questions of each kind a run asked."""
    orders = [order.split() for trial in own for order in trial.asked]
    told = []
    nouns = (("segment", "partition"), ("choose", "choice"), ("measure", "count"), ("look", "look"))
    for verb, noun in nouns:
        times = sorted({order.count(verb) for order in orders})
        if times and times[-1]:
            span = f"{times[0]}–{times[-1]}" if len(times) > 1 else f"{times[0]}"
            told.append(f"{span} {noun}" + "s" * (times[-1] > 1))
    return ", ".join(told) or "–"


def _strongest_bound(own: Sequence[Trial], epsilon: str) -> float | None:
    return max((trial.bound for trial in own if trial.epsilon == epsilon), default=None)


def _most(own: Sequence[Trial]) -> str:
    here = [trial for trial in own if number(trial.epsilon) == 1]
    if not here or any(trial.formula == "none" for trial in here):
        return "–"
    return f"{max(trial.loss for trial in here):.2f}" + " +" * any(t.formula != "all" for t in here)


def _found_limits(trials: Sequence[Trial]) -> Iterator[str]:
    """What the numbers themselves do not show."""
    texts = sorted({trial.mechanism for trial in trials})
    for epsilon in sorted({trial.epsilon for trial in trials}, key=number):
        tried = {trial.mechanism for trial in trials if trial.epsilon == epsilon}
        if missing := [text for text in texts if text not in tried]:
            yield f"- Not tried at ε = {epsilon}: {', '.join(f'`{text}`' for text in missing)}."
    bounds = {text: _strongest_bound([t for t in trials if t.mechanism == text], "1") for text in texts}
    weak = [f"`{text}` ({bound:.2f})" for text, bound in bounds.items() if bound is not None and bound < 0.5]
    if weak:
        yield (
            f"- At ε = 1 the attack saw less than half of ε for {', '.join(weak)}: the verdict says least about these."
        )
    elif texts:
        yield "- At ε = 1 the attack saw at least half of ε for every mechanism that was tried there."


def _strongest(trials: Sequence[Trial]) -> list[str]:
    best: dict[str, Trial] = {}
    for trial in sorted(trials, key=lambda trial: trial.bound / number(trial.epsilon)):
        best[trial.mechanism] = trial
    rows = (
        [
            *(f"`{name}`", trial.epsilon, f"{trial.bound:.2f}"),
            *(" ".join(map(str, trial.counts)), str(trial.cell), trial.pair),
        ]
        for name, trial in sorted(best.items())
    )
    return [
        "## The most telling pairs",
        "",
        "For every mechanism, where the bound came nearest to ε.",
        "",
        *table(["mechanism", "ε", "ε ≥", "counts", "one more in cell", "found"], rows),
    ]


def _zoo(caught: Sequence[Caught]) -> list[str]:
    found = sum(needed is not None for _, _, needed in caught)
    return [
        "## Leaky mechanisms",
        "",
        f"Mechanisms that are wrong by themselves, at ε = 1 on neighbours picked for each: {found} of {len(caught)}",
        "were caught, at 99.9 %. One go each; another needs up to twice or half as many runs.",
        "",
        *table(
            ["mechanism", "fault", "runs a side"],
            ([name, fault, "**not caught**" if n is None else f"{n:,}"] for name, fault, n in caught),
        ),
    ]
