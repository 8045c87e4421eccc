"""What `dphist audit --all` does: a campaign, its verdict, its page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from dphist.cli import screen
from dphist.release.atomic import atomic
from dphist_bench.audit.campaign import Trial, refuted, run_campaign
from dphist_bench.audit.page import results_page
from dphist_bench.zoo import leaky_mechanisms, runs_needed


def attack_all(results: Path, hours: float, page: Path | None, say: Callable[[str], None]) -> list[Trial]:
    """Go on with a campaign, say what it found, and give the trials whose claims fell.

    A page also says how soon each leaky mechanism of the zoo is caught.
    """
    trials = run_campaign(results, hours, say=say)
    fallen = refuted(trials)
    if page is not None:
        caught = []
        for name, leaky in leaky_mechanisms().items():
            say(f"catching: {name}")
            caught.append((name, leaky.fault, runs_needed(leaky)))
        text = results_page(
            trials,
            # Without --hours: a campaign goes on where it stopped, so the last go's say little.
            command=f"dphist audit --all --page {page.name}",
            date=datetime.now(UTC).date().isoformat(),
            caught=caught,
        )
        with atomic(page) as temporary:
            temporary.write_text(text, encoding="utf-8")
    screen.line(
        f"{results}: {len(trials):,} trials of {len({trial.mechanism for trial in trials})} mechanisms"
    )
    for trial in fallen:
        how = "a run lost more by formula" if trial.broken else f"ε ≥ {trial.bound:.3f}"
        screen.line(f"REFUTED {trial.mechanism} at ε = {trial.epsilon}: {how} on {trial.pair}")
    if not fallen:
        screen.line("every claim stands")
    return fallen
