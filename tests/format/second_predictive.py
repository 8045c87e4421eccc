"""The predictive law, for the second reader."""
# mypy: ignore-errors

import math
from functools import cached_property

import numpy as np
from second_linear import Tree
from second_reader import Model, Spread, normal, size_of, whole


class Predictive(Model, kind="predictive"):
    """The law of true counts."""

    @cached_property
    def halved(self):
        return Halved(self.story, self.arrays, self.shape)

    def noise(self, box, summed):
        law = self.halved
        mean, known, inner, _, noise = law.ask(box)
        variance = (law.hedged(known, noise, box.cells) + inner) * float(np.median(law.law["caution"]))
        return summed, Spread(variance + (mean - summed) ** 2, 0.0)

    def lean(self, box, published):
        return self.halved.ask(box)[0] - published

    def interval(self, box, stand, published, sure):
        deviation, cells = math.sqrt(self.halved.square(box, published)), box.cells
        if cells == 1 and self.counts is not None and not self.story["pruned"]:
            return likeliest(published, deviation, sure)
        return whole(published, normal(sure) * deviation, normal(sure) * deviation)

    def answer(self, box, summed):
        """The answer about several cells whose published sum may be biased."""
        if self.counts is None or box.cells <= 1:
            return summed
        law = self.halved
        mean, known, inner, plain, noise = law.ask(box)
        seen, part = self["departures"], box.cells / np.minimum(2.0 ** np.arange(40), self.counts.size)
        part = part[: len(seen)]
        biased = np.max(np.where(part <= 1.5, np.minimum(part, 1) * seen, 0), initial=0) > 1.1
        if self.story["pruned"]:
            biased |= (plain - summed) ** 2 > 9 * noise
            return max(plain, 0.0) if biased and law.deviations >= 10 else summed
        biased |= (plain - summed) ** 2 > 9 * noise
        promised = law.caution(box.cells) * (law.hedged(known, noise, box.cells) + inner)
        return (mean if promised < noise else plain) if biased else summed


def likeliest(published, deviation, sure):
    """The fewest whole counts that have so much of a normal law."""
    nearest, reach = max(round(published), 0.0), normal(sure) * deviation
    first = min(max(round(published - reach), 0.0), nearest)
    last = max(round(published + reach), nearest)

    def below(count):
        return 0.5 * math.erfc((published - count) / deviation / math.sqrt(2))

    spare = below(last + 0.5) - below(first - 0.5) - sure if deviation else 0
    while first < last and deviation:
        above = last > nearest and (last - published >= published - first or first >= nearest)
        edge = last if above else first
        share = below(edge + 0.5) - below(edge - 0.5)
        if share > spare:
            break
        spare -= share
        last, first = last - above, first + (not above)
    return min(first, max(published, 0.0)), max(last, published)


def drawn(law):
    """The variance of the whole numbers that are drawn."""
    size = size_of(law)
    if law["kind"] == "laplace":
        return 0.5 / math.sinh(0.5 / size) ** 2 if size > 1 / 700 else 0.0
    k = np.arange(1, 40)
    return (
        size
        if size > 4
        else float(2 * (k**2 @ np.exp(-(k**2) / 2 / size)) / (1 + 2 * np.exp(-(k**2) / 2 / size).sum()))
    )


class Halved:
    """The binary tree that a predictive law is about."""

    def __init__(self, model, arrays, shape):
        measured, law = model["measured"], model["law"]
        self.left, self.low, self.high, self.value, self.variance = [], [], [], [], []
        self.law = {name: arrays[told] if isinstance(told, int) else told for name, told in law.items()}
        if "tree" in measured:
            self.of_tree(Tree(measured["tree"], arrays))
        else:
            self.of_cells(arrays[measured["cells"]].reshape(shape), max(drawn(measured["law"]), 1e-6))
        n, unknown = len(self.left), 1e30
        best, spread = np.zeros(n), np.minimum(self.variance, unknown)
        for i in reversed(range(n)):
            y, v, c = self.value[i], spread[i], self.left[i]
            best[i] = y if v < unknown else 0.0
            if c >= 0:
                b, w = best[c] + best[c + 1], min(spread[c] + spread[c + 1], unknown)
                best[i], spread[i] = ((b * v + y * w) / (v + w), v * w / (v + w)) if v < unknown else (b, w)
        self.deviations = max(1.0, best[0] / math.sqrt(spread[0])) if spread[0] > 0 else math.inf
        # Two laws: what was learned, and plain least squares.
        self.mean, self.slope, self.rest, self.over = (np.zeros((2, n)) for _ in range(4))
        law, split = self.law, 0
        self.mean[:, 0] = best[0] + law["lean"][0], best[0]
        self.over[:, 0] = law["rest"][0], spread[0]
        for i in range(n):
            c = self.left[i]
            if c < 0:
                continue
            split, both = split + 1, spread[c] + spread[c + 1]
            s = spread[c] / both
            first = best[c] + s * (self.mean[1, i] - best[c] - best[c + 1])
            self.mean[:, c] = first + law["lean"][split], first
            self.mean[:, c + 1] = self.mean[:, i] - self.mean[:, c]
            self.slope[:, i], self.rest[:, i] = (
                (law["slope"][split], s),
                (law["rest"][split], s * spread[c + 1]),
            )
            self.over[:, c] = self.slope[:, i] ** 2 * self.over[:, i] + self.rest[:, i]
            self.over[:, c + 1] = (1 - self.slope[:, i]) ** 2 * self.over[:, i] + self.rest[:, i]

    def put(self, low, high, value, variance, inner, waiting):
        """The next node; its two parts will be the next ones that are free."""
        self.left.append(len(self.left) + len(waiting) + 1 if inner else -1)
        for name, each in (("low", low), ("high", high), ("value", value), ("variance", variance)):
            getattr(self, name).append(each)

    def of_cells(self, cells, variance):
        waiting = [(np.zeros(cells.ndim, int), np.array(cells.shape))]
        while waiting:
            low, high = waiting.pop(0)
            inner = bool((high - low).max() > 1)
            self.put(
                low,
                high,
                0.0 if inner else float(cells[tuple(low)]),
                math.inf if inner else variance,
                inner,
                waiting,
            )
            if inner:
                axis = int(np.argmax(high - low))
                one, other = high.copy(), low.copy()
                one[axis] = other[axis] = low[axis] + (high[axis] - low[axis] + 1) // 2
                waiting += [(low, one), (other, high)]

    def of_tree(self, tree):
        waiting = [[0]]
        while waiting:
            family = waiting.pop(0)
            low, high, value, variance = tree.low[family].min(0), tree.high[family].max(0), 0.0, math.inf
            if len(family) == 1:
                (i,) = family
                value, variance, family = tree.value[i], tree.own[i], list(tree.kids[i])
                while len(family) == 1:
                    # An only child is the same cells, measured once more.
                    y, v = tree.value[family[0]], tree.own[family[0]]
                    if math.isinf(variance):
                        value, variance = y, v
                    elif not math.isinf(v):
                        value, variance = (
                            (value * v + y * variance) / (variance + v),
                            variance * v / (variance + v),
                        )
                    family = list(tree.kids[family[0]])
            self.put(low, high, value, variance, bool(family), waiting)
            if family:
                waiting += self.parted(tree, family)

    @staticmethod
    def parted(tree, family):
        low, high = tree.low[family], tree.high[family]
        sides = np.where((low != low[0]).any(0), high.max(0) - low.min(0), 0)
        if not sides.any():
            return family[: len(family) // 2], family[len(family) // 2 :]
        begin = low[:, np.argmax(sides)]
        order = np.argsort(begin, kind="stable")
        family, begin, sizes = [family[i] for i in order], begin[order], tree.size[family][order]
        before = np.cumsum(sizes) - sizes
        uneven = np.where(np.append(False, np.diff(begin) > 0), abs(2 * before - sizes.sum()), np.inf)
        cut = int(np.argmin(uneven))
        return family[:cut], family[cut:]

    def ask(self, box):
        """Mean and variance by the law, what is unknown inside leaves, mean and variance by least squares."""
        n = len(self.left)
        share, mean, variance, inner, roots = np.zeros((2, n)), np.zeros(2), np.zeros(2), 0.0, 0.0
        for i in reversed(range(n)):
            c = self.left[i]
            if c < 0:
                part = box.share(self.low[i], self.high[i])
                share[:, i] = part
                mean += part * self.mean[:, i]
                if 0 < part < 1:
                    found = self.inside(i, box)
                    inner, roots = inner + found, roots + math.sqrt(found)
            else:
                s, one, other = self.slope[:, i], share[:, c], share[:, c + 1]
                share[:, i] = s * one + (1 - s) * other
                variance += (one - other) ** 2 * self.rest[:, i]
        variance += share[:, 0] ** 2 * self.over[:, 0]
        inner += self.law["alike"] * (roots**2 - inner)
        return mean[0], variance[0], inner, mean[1], variance[1]

    def inside(self, leaf, box):
        """What stays unknown of the part of a leaf that a box takes."""
        low, sides = self.low[leaf], self.high[leaf] - self.low[leaf]
        m, q, parts, found = (
            self.mean[0, leaf],
            self.mean[0, leaf] ** 2 + self.over[0, leaf],
            np.ones(len(sides), int),
            0.0,
        )
        while (sides / parts).max() > 1:
            axis, n = int(np.argmax(sides / parts)), math.prod(sides / parts)
            fraction, power = math.frexp(n)
            rest = (q * self.law["uneven"][max(power - (fraction <= 0.75), 0)] + m) / 4
            parts[axis] *= 2
            taken = [
                overlap(a - o, b - o, n, k) for a, b, o, n, k in zip(*box, low, sides, parts, strict=True)
            ]
            squares = [each @ each for each in taken]
            squares[axis] = float(((taken[axis][::2] - taken[axis][1::2]) ** 2).sum())
            found += math.prod(squares) * rest
            m, q = m / 2, q / 4 + rest
        return found

    def caution(self, cells):
        number = math.ceil(math.log2(max(cells, 1) / 1.5))
        return self.law["caution"][min(max(number, 0), len(self.law["caution"]) - 1)]

    def hedged(self, known, noise, cells):
        return known + (self.law["doubt"] if cells > self.law["doubted_from"] else 0) * max(noise - known, 0)

    def square(self, box, published):
        """What is expected of the squared error."""
        mean, known, inner, plain, noise = self.ask(box)
        believed = (
            self.caution(box.cells) * (self.hedged(known, noise, box.cells) + inner) + (mean - published) ** 2
        )
        return self.law["overlap"] * min(believed, 1.2 * (noise + 2 * inner) + (plain - published) ** 2)


def overlap(a, b, n, k):
    """The shares that the cells from a to b take of k equal parts of n cells."""
    edges = np.arange(k + 1) * n / k
    return np.clip(np.minimum(edges[1:], b) - np.maximum(edges[:-1], a), 0, None) * k / n
