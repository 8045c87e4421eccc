"""Tables of some of many attributes, and what is guessed of others, for the second reader."""
# mypy: ignore-errors

import math
from itertools import combinations
from types import MappingProxyType

import numpy as np
from second_reader import Box, Model, Spread, around, half, hold, normal, whole


def near(told, published, arrays):
    """Tables by their attributes: the published ones, or others."""
    return published if told == "published" else {tuple(axes): arrays[values] for axes, values in told}


def subsets(axes):
    return [some for size in range(len(axes) + 1) for some in combinations(axes, size)]


class Tables(Model):
    """Least squares over tables, residual by residual, and what they allow of others."""

    trees = MappingProxyType({})

    def __init__(self, *fields):
        super().__init__(*fields)
        self.measured, summed = self.told(), {}
        for each in self.measured:
            axes, apart = tuple(each["axes"]), each.get("differences", [])
            about = each.get("about") or [list(some) for some in subsets(axes)]
            for some in subsets(axes):
                asked = {*apart, *(axis for axis in axes if axis in self.trees)}
                if list(some) not in about or not asked <= {*some} or (each.get("residual") and some != axes):
                    continue
                part = each["values"].sum(tuple(i for i, axis in enumerate(axes) if axis not in some)) * 1.0
                for i, axis in enumerate(some):
                    if axis in self.trees:
                        tree = self.trees[axis]
                        part = np.moveaxis(np.tensordot(tree["rows"].T / tree["squares"], part, (1, i)), 0, i)
                    elif axis in apart:
                        part = np.concatenate([part, -part], i) / 2
                weight = 2.0 ** len(apart) / math.prod(self.shape[axis] for axis in axes if axis not in some)
                summed.setdefault(some, []).append((weight / each["variance"], part, each))
        self.known, self.heaviest = {}, {}
        for some, parts in summed.items():
            precision = sum(weight for weight, _, _ in parts)
            values = sum(weight * part for weight, part, _ in parts) / precision
            for axis in range(len(some)):
                values = values - values.mean(axis, keepdims=True)
            self.known[some] = precision, values, [(weight / precision, each) for weight, _, each in parts]

    def kept(self, axes):
        return [axis for axis in axes if self.shape[axis] > 1]

    def covers(self, axes):
        return all(some in self.known for some in subsets(self.kept(axes)))

    def parts(self, box):
        """Of every residual that a box meets: itself, its sum over the box, its squares and its largest weight."""
        axes = self.kept(box.bounded(self.shape))
        for some in subsets(axes):
            precision, values, speak = self.known[some]
            total, squares, most = box.on(some).sum(values), 1 / precision, 1.0
            for axis in axes:
                k, n = box.high[axis] - box.low[axis], self.shape[axis]
                left, side = k - k * k / n, max(k / n, 1 - k / n) * (k < n)
                if axis in self.trees:
                    left, side = self.through(axis, box.low[axis], box.high[axis])
                inside = axis in some
                total *= 1 if inside else k / n
                squares, most = (
                    squares * (left if inside else (k / n) ** 2),
                    most * (side if inside else k / n),
                )
            yield some, total, squares, most, speak

    def fitted(self, box):
        return sum(total for _, total, *_ in self.parts(box))

    def interval(self, box, stand, published, sure):
        axes = box.bounded(self.shape)
        if self.covers(axes):
            return self.nearest(box, published, sure)
        return (
            hold(*self.allowed(axes, box, sure), published)
            if published == published
            else (math.nan, math.nan)
        )

    def nearest(self, box, published, sure):
        low, high = around(self.fitted(box), half(self.spread(box), sure), published)
        return hold(float(round(low)), float(round(high)), published)

    def allowed(self, asked, box, sure):
        """Fréchet's bounds, from tables that hold some of the attributes."""
        inside = sorted(
            (some for some in self.known if {*some} <= {*asked} and self.covers(some)),
            key=lambda s: (-len(s), s),
        )
        pieces = []
        for some in inside:
            pieces += [] if any({*some} <= {*larger} for larger in pieces) else [some]
        chains = {}
        for start in range(len(pieces[:16]) if {*asked} == set().union(*pieces) else 0):
            rest, seen, chain, common = pieces[start:] + pieces[:start], set(), [], []
            while rest := [some for some in rest if not {*some} <= seen]:
                best = max(rest, key=lambda some: len(seen & {*some}))
                common += [tuple(sorted(seen & {*best}))] if chain else []
                chain, seen = [*chain, best], seen | {*best}
            chains.setdefault((frozenset(chain), tuple(sorted(common))), (chain, common))
        looked = dict.fromkeys([*pieces, *(cut for _, common in chains.values() for cut in common)])
        for some in looked:
            low, high = (
                [side if i in some else end for i, (side, end) in enumerate(zip(s, e, strict=True))]
                for s, e in ((box.low, [0] * len(box.low)), (box.high, self.shape))
            )
            weaker = Box(low, high)
            looked[some] = self.nearest(weaker, self.fitted(weaker), 1 - (1 - sure) / len(looked))
        least = [
            sum(looked[c][0] for c in chain) - sum(looked[c][1] for c in common)
            for chain, common in chains.values()
        ]
        return max([0.0, *least]), min(looked[some][1] for some in pieces)


class MeasuredTables(Tables, kind="tables"):
    """Tables that were measured whole."""

    def told(self):
        told = self["tables"]
        self.gaussian = told["kind"] == "gaussian"
        return [
            {"axes": axes, "values": self.arrays[values], "variance": 2 * scale**2, "scale": scale}
            for axes, values, scale in zip(told["axes"], told["values"], told["scales"], strict=True)
        ]

    def spread(self, box):
        variance, every = 0.0, list(range(len(self.shape)))
        smaller = {some for each in self.measured if each["axes"] != every for some in subsets(each["axes"])}
        heavy = [float(each["axes"] == every) for each in self.measured]
        for some, _, squares, most, speak in self.parts(box):
            variance += squares
            for portion, each in speak if some in smaller else ():
                whole = each["axes"] == every
                heavy[self.measured.index(each)] += most * (1 - portion if whole else portion)
        largest = max(h * each["scale"] for h, each in zip(heavy, self.measured, strict=True))
        return Spread(variance, 0.0 if self.gaussian else min(largest, math.sqrt(variance / 2)))

    # ---- cubes and tables that were moved towards smaller ones

    def tables_near(self, axes):
        """A published table."""
        if self.counts is not None:
            return self.counts.sum(tuple(axis for axis in range(self.counts.ndim) if axis not in axes))
        return near(self["near"], self.tables, self.arrays).get(tuple(axes))

    def plainly(self, box, summed):
        """Whether least squares answers."""
        if (
            box.cells <= 1
            or (self.counts is None and self["near"] is None)
            or not self.covers(box.bounded(self.shape))
        ):
            return False
        noise, most = self.spread(box).variance, math.inf
        for axis in range(len(self.shape)):
            table = self.tables_near([axis])
            most = min(most, math.inf if table is None else box.on([axis]).sum(table))
        size = min(round(math.log2(box.cells)), len(self["biased"]) - 1)
        departs = (self.fitted(box) - summed) ** 2 > 36 * noise or self["biased"][size]
        return bool(noise < max(summed, most - summed) ** 2 and (self["follows"] or departs))

    def answer(self, box, summed):
        return max(self.fitted(box), 0.0) if self.plainly(box, summed) else summed

    def interval(self, box, stand, published, sure):
        exact = super().interval(box, stand, published, sure)
        if self["shrunk"] is None or not self.covers(box.bounded(self.shape)):
            return exact
        summed = box.sum(self.counts)
        deviation = math.sqrt(self.doubt(box) + (summed - published) ** 2)
        if deviation + 0.25 < math.sqrt(self.spread(box).variance) and not self.plainly(box, summed):
            return whole(published, normal(sure) * deviation, normal(sure) * deviation)
        return exact

    def doubt(self, box):
        """The squared error of the sum of shrunk cells."""
        shrunk, every, found = self["shrunk"], tuple(range(len(self.shape))), 0.0
        share = [(b - a) / n for a, b, n in zip(*box, self.shape, strict=True)]
        tables = {tuple(each["axes"]): each for each in shrunk["tables"]}
        for some in subsets(every):
            told, outer = (
                tables.get(some, {"times": None}),
                math.prod(share[i] ** 2 for i in every if i not in some),
            )
            if some != every and len(some) > shrunk["order"]:
                continue
            noise = (
                outer
                * math.prod(share[i] * self.shape[i] * (1 - share[i]) for i in some)
                / self.known[some][0]
            )
            if told["times"] is None:
                found += 1.21 * noise
                continue
            mean = self.arrays[told["sums"][0]].flat[-1] / math.prod(self.shape[i] for i in some)
            cell = Box([0] * len(every), [1 if i in some else n for i, n in enumerate(self.shape)])
            if some != every and 16 * told["times"] * mean >= self.spread(cell).variance:
                found += 1.21 * noise
                continue
            order = shrunk["order"] if some == every else len(some) - 1
            found += told["times"] * outer * self.departs(told, box.on(some), [share[i] for i in some], order)
        return found

    def departs(self, told, box, share, order):
        """What blocks of all sizes have left, beyond tables of so many attributes."""
        found = 0.0
        for sums, length in zip(told["sums"], told["lengths"], strict=True):
            block = self.arrays[sums]
            for axis in range(block.ndim):
                block = np.diff(block, axis=axis)
            sides = list(zip(*box, length, strict=True))
            part = math.prod(min((b - a) / n, 1) for a, b, n in sides)
            within = Box([a // n for a, _, n in sides], [-(-b // n) for _, b, n in sides])
            found += part**2 * max(within.sum(block), 0.0)
        axes = range(len(share))
        smaller = (some for some in subsets(tuple(axes)) if len(some) <= order)
        held = sum(math.prod(1 - share[i] if i in some else share[i] for i in axes) for some in smaller)
        return found * max(1 - held, 0.0)


class Residuals(Tables, kind="residuals"):
    """Tables, differences and residuals, out of many columns."""

    def told(self):
        told = self["residuals"]
        self.trees = {each["axis"]: self.tree(each) for each in told["trees"]}
        return [{**each, "values": self.arrays[each["values"]]} for each in told["measured"]]

    def tree(self, told):
        start, middle, stop, depth, noise, scale = (
            self.arrays[told[name]] for name in ("start", "middle", "stop", "depth", "noise", "scale")
        )
        left, right, place = middle - start, stop - middle, np.arange(self.shape[told["axis"]])[:, None]
        rows = right * ((place >= start) & (place < middle)) - left * ((place >= middle) & (place < stop))
        squares = left * right * (left + right)
        return {"rows": rows.T, "squares": squares, "noise": noise[depth], "scale": scale[depth]}

    def through(self, axis, low, high):
        tree = self.trees[axis]
        met = tree["rows"][:, low:high].sum(1) / tree["squares"]
        return float(met**2 @ tree["noise"]), float((abs(met) * tree["scale"]).max())

    def spread(self, box):
        one = self.measured[0]
        if len(self.measured) == 1 and not self.trees and not one["residual"] and not one["differences"]:
            kind, size = ("laplace", one["scale"]) if one["scale"] else ("gaussian", one["variance"])
            return Spread(0, 0, box.on(one["axes"]).cells, {"kind": kind, "size": size})
        variance = largest = 0.0
        for _, _, squares, most, speak in self.parts(box):
            variance, largest = (
                variance + squares,
                largest + most * max(p * each["scale"] for p, each in speak),
            )
        return Spread(variance, min(largest, math.sqrt(variance / 2)))


class Stages(Residuals, kind="stages"):
    """Tables of which some were chosen by others."""
