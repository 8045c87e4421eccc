"""What must show beside other libraries, as checks on readings."""

from __future__ import annotations

from dphist_bench.claims import Check
from dphist_bench.experiment import Claim, Finding
from dphist_bench.results import Results
from dphist_bench.views import short

OURS = "dphist, laplace"


def least_ratio(measure: str) -> Check:
    """Whether ours costs less than every other library at every size, and where not."""

    def check(results: Results) -> Finding:
        mine = {(p.data, p.x): p.value for p in results.select(measure, method=OURS)}
        ratios = [
            (point.value / mine[point.data, point.x], point)
            for point in results.select(measure)
            if point.method != OURS and mine.get((point.data, point.x), 0) > 0
        ]
        if not ratios:
            return Finding(False, "no other library was measured")
        lost = sorted((pair for pair in ratios if pair[0] <= 1), key=lambda pair: pair[0])
        least, most = (end(ratio for ratio, _ in ratios) for end in (min, max))
        words = f"ahead in {len(ratios) - len(lost)} of {len(ratios)} comparisons; "
        words += f"theirs from {short(least)} to {short(most)} times ours"
        if lost:
            places = (f"{p.method} at {p.data}, {p.x:,.0f} cells ({short(ratio)} ×)" for ratio, p in lost)
            words += f"; behind {', '.join(places)}"
        return Finding(not lost, words)

    return check


def _largest(results: Results) -> Finding:
    found = {p.method: p.value for p in results.select("largest cube in 60 s, cells")}
    others = {name: cells for name, cells in found.items() if name != OURS}
    if OURS not in found or not others:
        return Finding(False, "no other library was measured")
    best = max(others, key=lambda name: others[name])
    return Finding(
        found[OURS] > others[best],
        f"ours {found[OURS]:,.0f} cells, {short(found[OURS] / others[best])} times the next best ({best}, "
        f"{others[best]:,.0f})",
    )


def _error(measure: str, ours: str) -> Check:
    def check(results: Results) -> Finding:
        others = dict.fromkeys(p.method for p in results.select(measure) if not p.method.startswith("dphist"))
        ratios = [ratio for name in others for ratio in results.ratios(measure, name, ours)]
        if not ratios:
            return Finding(False, "no other library was measured")
        return Finding(
            min(ratios) > 1,
            f"the others' {measure} is {short(min(ratios))} to {short(max(ratios))} times that of {ours}",
        )

    return check


CLAIMS_COST = (
    Claim(
        says="Ours takes less processor time than every peer at every size, starting up included",
        where="whole processes",
        check=least_ratio("CPU s"),
        why="The smallest jobs are nearly all importing: Python, NumPy, and Arrow or Polars.",
    ),
    Claim(
        says="Ours takes less processor time than every peer at every size, starting up left out",
        where="warm processes",
        check=least_ratio("CPU s without start"),
        why="In the smallest jobs half of the time goes into saving: ours is a release that has reached the disk, "
        "theirs an array.",
    ),
)
CLAIMS_LARGEST = (
    Claim(
        says="Ours publishes a larger cube in 60 seconds than any peer",
        where="whole processes",
        check=_largest,
    ),
)
CLAIMS_ERROR = (
    Claim(
        says="Our error on single cells is below every peer's at equal ε",
        where="mechanism auto, told that cells will be asked",
        check=_error("RMSE of cells", "dphist, auto for cells"),
    ),
    Claim(
        says="Our error on ranges is below every peer's at equal ε",
        where="mechanism auto, told that ranges will be asked",
        check=_error("RMSE of ranges", "dphist, auto for ranges"),
    ),
)
