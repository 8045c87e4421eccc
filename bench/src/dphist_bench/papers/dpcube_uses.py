"""Figures 17 and 18 of the DPCube paper: classification from a release, and blocking for record linkage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dphist.mechanisms.dpcube import DPCube
from dphist.mechanisms.protocol import Mechanism
from dphist.mechanisms.spatialtrees import HierarchicalKD
from dphist.model.histogram import Histogram
from dphist.publishing.door import publish
from dphist.uses.classify import ReleaseID3
from dphist.uses.linkage import Blocking
from dphist.uses.private_id3 import private_id3
from dphist_bench.cases import Case, Reading, Setting
from dphist_bench.data import people
from dphist_bench.experiment import Claim, Experiment, Finding
from dphist_bench.results import Results
from dphist_bench.views import Lines

_FEATURES = ("workclass", "marital_status", "race", "sex")
# The paper's six; its wage is the salary class, the only one the file has.
_LINKED = ("age", "education_num", "salary", "marital_status", "race", "sex")
_EPSILONS = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1")

# ---- Figure 17 -----------------------------------------------------------------------------------------------

_RIGHT = "share classified right"
_PLAIN, _CUBE, _ASKED = "ID3 on the records", "ID3 on DPCube's release", "interactive ID3"
_COMMONEST = "always the commonest"


def _from(mechanism: str) -> Callable[[Histogram, str], ReleaseID3]:
    return lambda histogram, epsilon: ReleaseID3("salary").fit(
        publish(histogram, epsilon=epsilon, mechanism=mechanism)
    )


_CLASSIFIERS: Mapping[str, Callable[[Histogram, str], ReleaseID3]] = {
    _PLAIN: lambda histogram, _: ReleaseID3("salary").fit_on_public_records(histogram),
    _CUBE: _from("dpcube(estimator='nonnegative')"),
    "ID3 on noisy cells": _from("laplace"),
    _ASKED: lambda histogram, epsilon: private_id3(histogram, "salary", epsilon, depth=len(_FEATURES)),
}


@lru_cache(maxsize=1)
def _halves(setting: Setting) -> tuple[Histogram, people.Records]:
    """Two thirds of the records train, counted; a third tests."""
    records = people.records(setting)
    draw = np.random.default_rng(11)  # noqa: TID251 -- which records are held out
    order = draw.permutation(len(records["salary"]))
    cut = 2 * order.size // 3
    return people.count(people.some(records, order[:cut]), *_FEATURES, "salary"), people.some(
        records, order[cut:]
    )


@dataclass(frozen=True)
class Classified:
    """How many held-out records a tree gets right."""

    def cases(self, setting: Setting) -> Sequence[Case]:
        """Every classifier at every α."""
        epsilons = ("0.1", "1") if setting.quick else _EPSILONS
        return [Case("salary", name, e) for name in (*_CLASSIFIERS, _COMMONEST) for e in epsilons]

    def trial(self, case: Case, number: int, setting: Setting) -> Iterator[Reading]:
        """Learn once and judge."""
        train, test = _halves(setting)
        truth = test["salary"]
        if case.method == _COMMONEST:
            yield Reading(_RIGHT, float(np.mean(truth == "<=50K")))
        else:
            yield Reading(_RIGHT, _CLASSIFIERS[case.method](train, case.epsilon).score(test, truth))


def _interactive(results: Results) -> Finding:
    """DPCube's tree beside the interactive one at every α."""
    mine = {p.epsilon: p.value for p in results.select(_RIGHT, method=_CUBE)}
    theirs = {p.epsilon: p.value for p in results.select(_RIGHT, method=_ASKED)}
    ahead = [e for e in mine if mine[e] > theirs[e]]
    gap = sum(mine[e] - theirs[e] for e in mine) / len(mine)
    return Finding(
        gap > 0, f"ahead at {len(ahead)} of {len(mine)} values of α, by {100 * gap:.2g} points on average"
    )


def _comparable(results: Results) -> Finding:
    """How far DPCube's tree is below the one on the records."""
    plain = {p.epsilon: p.value for p in results.select(_RIGHT, method=_PLAIN)}
    gaps = {p.epsilon: plain[p.epsilon] - p.value for p in results.select(_RIGHT, method=_CUBE)}
    words = ", ".join(f"{100 * gap:.2g} points below at α = {e}" for e, gap in gaps.items())
    return Finding(all(gap <= 0.02 for e, gap in gaps.items() if float(e) >= 0.1), words)


# ---- Figure 18 -----------------------------------------------------------------------------------------------

_RATIO = "reduction ratio"
_BY_BUDGET, _BY_ATTRIBUTES = "(a) two attributes", "(b) α = 0.1"
_BLOCKERS: Mapping[str, Mechanism] = {
    "DPCube": DPCube(estimator="uniform"),
    "hierarchical kd": HierarchicalKD(),
}


@lru_cache(maxsize=1)
def _parties(setting: Setting) -> tuple[people.Records, people.Records]:
    """Each party holds a random half of the records."""
    records = people.records(setting)
    draw = np.random.default_rng(12)  # noqa: TID251 -- who holds which records
    order = draw.permutation(len(records["age"]))
    return people.some(records, order[::2]), people.some(records, order[1::2])


@lru_cache(maxsize=2)
def _counted(names: tuple[str, ...], setting: Setting) -> tuple[Histogram, Histogram]:
    one, other = _parties(setting)
    return people.count(one, *names), people.count(other, *names)


@dataclass(frozen=True)
class Linked:
    """Which share of all pairs of records two parties need not compare (Equation 10)."""

    def cases(self, setting: Setting) -> Sequence[Case]:
        """Against α with two attributes, then against the number of attributes at α = 0.1."""
        epsilons = ("0.1", "1") if setting.quick else ("0.05", "0.1", "0.2", "0.5", "1")
        most = 3 if setting.quick else len(_LINKED)
        cases = [Case(_BY_BUDGET, name, e, 2) for name in _BLOCKERS for e in epsilons]
        return cases + [
            Case(_BY_ATTRIBUTES, name, "0.1", k) for name in _BLOCKERS for k in range(2, most + 1)
        ]

    def trial(self, case: Case, number: int, setting: Setting) -> Iterator[Reading]:
        """Both parties release once.

        All blocks are compared, so that records which agree always meet: dropping blocks that look empty would spare
        more pairs and lose matches.
        """
        names = _LINKED[: int(case.x or 2)]
        one, other = (
            publish(counted, epsilon=case.epsilon, mechanism=_BLOCKERS[case.method])
            for counted in _counted(names, setting)
        )
        blocking = Blocking.from_releases(one, other, least=float("-inf"))
        yield Reading(_RATIO, blocking.reduction_ratio(*_parties(setting)))


def _outperforms(results: Results) -> Finding:
    """The reduction ratios of both, over all points."""
    words, holds = [], True
    for data in (_BY_BUDGET, _BY_ATTRIBUTES):
        spans = {}
        for name in _BLOCKERS:
            values = [p.value for p in results.select(_RATIO, data=data, method=name)]
            spans[name] = values
            words.append(f"{data}: {name} {min(values):.1%} to {max(values):.1%}")
        holds &= all(a > b for a, b in zip(*spans.values(), strict=True))
    return Finding(holds, "; ".join(words))


def _robust(results: Results) -> Finding:
    """What is left of each reduction ratio with all attributes."""
    left = {}
    for name in _BLOCKERS:
        line = sorted((p.x or 0.0, p.value) for p in results.select(_RATIO, data=_BY_ATTRIBUTES, method=name))
        left[name] = line[-1][1] - line[0][1]
    cube, tree = left.values()
    words = ", ".join(f"{name} by {100 * change:+.2g} points" for name, change in left.items())
    return Finding(cube < 0 and tree < 0 and cube > tree, f"from two attributes to all: {words}")


_DATA = "Without the Adult file the records are made up; verdicts are the same on both."

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment(
        name="dpcube/figure17",
        title="Figure 17: classification of held-out records against α",
        work=Classified(),
        trials=50,
        views=(
            Lines(
                title="Share of held-out records classified right",
                measure=_RIGHT,
                x="epsilon",
                axis="α",
                panels=(),
                log="x",
            ),
        ),
        reported="ID3 on the records scores 76.9 %; ID3 on DPCube's release is slightly below it and ahead of the "
        "interactive ID3 of Friedman and Schuster at every α.",
        differs=f"{_DATA} Two thirds of the records train and a third tests, since the second part of the file is "
        "rarely at hand. Our interactive ID3 gives each level of its tree a share of the budget, with a proof; the "
        "paper does not say how its own spends it. There is little to gain: always guessing the commonest class is "
        "nearly as good as ID3 on the records.",
        claims=(
            Claim(
                says="ID3 on DPCube's release outperforms the interactive ID3",
                where="Fig. 17",
                check=_interactive,
            ),
            Claim(
                says="ID3 on DPCube's release is comparable to ID3 on the records (within two points from α = 0.1 on)",
                where="Fig. 17",
                check=_comparable,
            ),
        ),
    ),
    Experiment(
        name="dpcube/figure18",
        title="Figure 18: blocking for record linkage",
        work=Linked(),
        trials=20,
        views=(
            Lines(
                title="Fig. 18(a): reduction ratio against α, two attributes",
                measure=_RATIO,
                x="epsilon",
                axis="α",
                panels=(),
                log="x",
                where={"data": _BY_BUDGET},
            ),
            Lines(
                title="Fig. 18(b): reduction ratio against the number of attributes, α = 0.1",
                measure=_RATIO,
                axis="attributes",
                panels=(),
                log="",
                where={"data": _BY_ATTRIBUTES},
            ),
        ),
        reported="DPCube keeps about 85 % and is ahead of the hierarchical kd-tree throughout; both rise with α and "
        "fall with the number of attributes.",
        differs=f"{_DATA} The paper's wage is the salary class here. The paper does not say how its kd-tree spends the "
        "budget; ours splits it over the levels and finds medians by the exponential mechanism, with a proof.",
        claims=(
            Claim(
                says="DPCube outperforms the hierarchical kd-tree at every α and every number of attributes",
                where="Fig. 18",
                check=_outperforms,
                why="Equation 10 rewards blocks of equal size, which is what medians make.",
            ),
            Claim(
                says="Both reduction ratios fall as attributes are added, that of DPCube less",
                where="Fig. 18(b)",
                check=_robust,
                why="With more attributes cells are emptier, noise hides every box from DPCube, and it leaves large "
                "blocks whole; medians always halve the records.",
            ),
        ),
    ),
)
