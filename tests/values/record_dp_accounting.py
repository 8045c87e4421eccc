"""Record what Google's dp-accounting says of conversions and compositions, for `test_dp_accounting.py`.

It pins an attrs that the other test tools have left behind, so it cannot be installed beside them: its answers stand in
``dp_accounting.json``. To record them again, first with this package, then in an environment of its own:

    python tests/values/record_dp_accounting.py paths
    python -m venv other && other/bin/pip install dp-accounting
    other/bin/python tests/values/record_dp_accounting.py answers

*conversions*: the ε of a ρ at a δ, by Rényi orders (`rdp.compute_epsilon`). *compositions*: the δ of many pure
releases and Gaussian ones together, by privacy loss distributions. *paths*: the same for what ledgers accepted of
random adaptive spending (`dphist bench run composition` tries ten thousand against an oracle of ours).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("dp_accounting.json")
RHOS = ("1/100000", "1/10000", "1/1000", "3/200", "1/100", "1/20", "1/10", "1/4", "1/2", "1", "2", "5", "20")
DELTAS = ("1e-3", "1e-5", "1e-6", "1e-9", "1e-12")
# How many of which pure ε, a ρ beside them (0: none), and the ε at which δ is asked for.
MIXES: tuple[tuple[list[tuple[str, int]], str, float], ...] = (
    ([("1/10", 226)], "0", 10.0),
    ([("1/10", 226)], "1/100", 10.0),
    ([("1/100", 400)], "0", 1.0),
    ([("1/100", 400)], "1/50", 1.0),
    ([("1/10", 20)], "1/10", 3.0),
    ([("1/2", 4), ("1/10", 10)], "0", 2.5),
    ([("1/2", 4), ("1/10", 10)], "1/20", 2.5),
    ([("1", 3)], "1/4", 4.0),
    ([("1", 3), ("1/4", 8)], "1/100", 4.5),
    ([("1/20", 60)], "1/200", 2.0),
    ([], "1/2", 6.0),
    ([], "3/200", 1.0),
    ([], "1/10", 2.0),
    ([], "2", 9.0),
)
SEEDS = 30


def paths() -> None:
    """Write down what ledgers accept, one path a seed."""
    from dphist_bench.measurements.trust import composition

    made = []
    for name, total in composition.TOTALS:
        if total.epsilon is None or total.pure:
            continue
        for seed in range(SEEDS):
            spends = composition.path(total, seed)
            pure = [str(each.epsilon) for each in spends if each.epsilon is not None]
            rho = [str(each.rho) for each in spends if each.rho is not None]
            made.append(
                {"total": name, "seed": seed, "epsilon": float(total.epsilon), "pure": pure, "rho": rho}
            )
    told = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    _write(told | {"paths": made})


def answers() -> None:
    """Ask dp-accounting."""
    from collections import Counter
    from fractions import Fraction
    from importlib.metadata import version
    from math import sqrt

    import numpy as np
    from dp_accounting.pld import common, privacy_loss_distribution  # type: ignore[import-not-found]
    from dp_accounting.rdp import rdp_privacy_accountant  # type: ignore[import-not-found]

    def delta(pure: list[tuple[str, int]], rho: Fraction, epsilon: float) -> float:
        whole: Any = None
        # Every loss is a multiple of the lattice where pure amounts are; Gaussian ones are rounded up.
        step = 1e-3
        for text, count in pure:
            one = privacy_loss_distribution.from_privacy_parameters(
                common.DifferentialPrivacyParameters(float(Fraction(text)), 0.0),
                value_discretization_interval=step,
            )
            many = one.self_compose(count)
            whole = many if whole is None else whole.compose(many)
        if rho:
            one = privacy_loss_distribution.from_gaussian_mechanism(
                1 / sqrt(2 * rho), value_discretization_interval=step
            )
            whole = one if whole is None else whole.compose(one)
        return float(whole.get_delta_for_epsilon(epsilon))

    told = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    orders = np.concatenate([1 + np.logspace(-4, 6, 8000)])
    told["dp-accounting"] = version("dp-accounting")
    told["conversions"] = [
        [
            rho,
            chance,
            float(
                rdp_privacy_accountant.compute_epsilon(
                    orders, float(Fraction(rho)) * orders, float(Fraction(chance))
                )[0]
            ),
        ]
        for rho in RHOS
        for chance in DELTAS
    ]
    told["compositions"] = [
        [pure, rho, epsilon, delta(pure, Fraction(rho), epsilon)] for pure, rho, epsilon in MIXES
    ]
    for each in told.get("paths", ()):
        counts = Counter(each["pure"])
        rho = sum((Fraction(text) for text in each["rho"]), Fraction(0))
        each["delta"] = delta(sorted(counts.items()), rho, each["epsilon"])
    _write(told)


def _write(told: dict[str, Any]) -> None:
    lines = []
    for key, value in told.items():
        if isinstance(value, list):
            rows = ",\n  ".join(json.dumps(row) for row in value)
            lines.append(f' "{key}": [\n  {rows}\n ]')
        else:
            lines.append(f' "{key}": {json.dumps(value)}')
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    {"paths": paths, "answers": answers}[sys.argv[1]]()
