"""The page that says what a campaign found, for people who want to check before they trust."""

from __future__ import annotations

from collections.abc import Sequence

from dphist.audit.attack import Report
from dphist.audit.campaign import ALPHA, Trial, refuted


def results_page(
    trials: Sequence[Trial], *, command: str, date: str, caught: Sequence[tuple[str, str, Report]] = ()
) -> str:
    """Write a campaign's results as Markdown; ``caught`` are leaky mechanisms with the reports that refute them."""
    fallen = refuted(trials)
    mechanisms = sorted({trial.mechanism for trial in trials})
    runs = 2 * sum(trial.runs for trial in trials)
    lines = [
        "# Audit results",
        "",
        f"Made on {date} by `{command}`. {len(trials):,} trials of {len(mechanisms)} mechanisms, {runs:,} runs.",
        "",
        f"**{_verdict(fallen)}** Trials of a round are judged together by Holm's rule; over all rounds a true claim is",
        f"refuted with probability at most {ALPHA:g}. An audit refutes claims; it does not prove them.",
        "",
        "`ε ≥` is the largest lower bound over the mechanism's trials at that ε, each at 99.9 % by itself. One near ε",
        "says that the attack saw nearly all there is to see, a low one that the mechanism tells less there or that",
        "the attack is weak. `smallest p` is over all trials of the mechanism.",
        "",
    ]
    epsilons = sorted({trial.epsilon for trial in trials}, key=lambda text: eval_fraction(text))
    head = [
        "mechanism",
        "trials",
        "runs a side, most",
        *(f"ε ≥ at {e}" for e in epsilons),
        "smallest p",
        "verdict",
    ]
    lines += ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name in mechanisms:
        own = [trial for trial in trials if trial.mechanism == name]
        bounds = []
        for epsilon in epsilons:
            here = [trial.bound for trial in own if trial.epsilon == epsilon]
            bounds.append(f"{max(0.0, max(here)):.2f}" if here else "–")
        verdict = "**refuted**" if any(trial in fallen for trial in own) else "stands"
        row = [f"`{name}`", str(len(own)), f"{max(t.runs for t in own):,}", *bounds]
        lines.append("| " + " | ".join([*row, f"{min(t.chance for t in own):.2g}", verdict]) + " |")
    lines += ["", *_strongest(trials)]
    if caught:
        lines += ["", *_zoo(caught)]
    return "\n".join(lines) + "\n"


def eval_fraction(text: str) -> float:
    """Read ``1/2`` as a number, for sorting."""
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


def _verdict(fallen: Sequence[Trial]) -> str:
    if not fallen:
        return "Every claim stands."
    return "Refuted: " + ", ".join(sorted({trial.mechanism for trial in fallen})) + "."


def _strongest(trials: Sequence[Trial]) -> list[str]:
    ranked = sorted(trials, key=lambda trial: trial.bound / eval_fraction(trial.epsilon), reverse=True)[:10]
    lines = [
        "## The most telling pairs",
        "",
        "| mechanism | ε | ε ≥ | counts | one more in cell | found |",
        "|---|---|---|---|---|---|",
    ]
    for trial in ranked:
        counts = " ".join(map(str, trial.counts))
        lines.append(
            f"| `{trial.mechanism}` | {trial.epsilon} | {trial.bound:.2f} | {counts} | {trial.cell} | {trial.pair} |"
        )
    return lines


def _zoo(caught: Sequence[tuple[str, str, Report]]) -> list[str]:
    found = sum(not report.passed for _, _, report in caught)
    lines = [
        "## Leaky mechanisms",
        "",
        f"The attack is worth what it catches: {found} of {len(caught)} here. Runs double from 150 until the claim",
        "ε = 1 falls at 99.9 %.",
        "",
        "| mechanism | fault | runs a side | ε ≥ |",
        "|---|---|---|---|",
    ]
    for name, fault, report in caught:
        told = f"{report.epsilon_lower:.2f}" if not report.passed else "**not caught**"
        lines.append(f"| {name} | {fault} | {report.runs:,} | {told} |")
    return lines
