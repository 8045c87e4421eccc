"""Pieces, keys that were shown, chances of what was not measured, sums of measures, for the second reader."""
# mypy: ignore-errors

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
from second_reader import Box, Independent, Model, Spread, half, hold, model, normal, size_of, whole
from second_tables import near


class Parts(Model, kind="parts"):
    """Pieces with models of their own."""

    def __init__(self, *fields):
        super().__init__(*fields)
        inner = self.story.get("errors") or self.story["laws"]
        told = self.story.get("counts")
        self.parts = [
            model(each, self.arrays, *about, None, self.left)
            for each, about in zip(inner, self.apart(self.published, told), strict=True)
        ]

    @property
    def left(self):
        return [name for name in self.names if name not in self.story["pieces"].get("by", ())]

    def apart(self, counts, told):
        """The shape and the cells of every piece."""
        cut, shape = self.story["pieces"], self.shape
        if "by" in cut:
            axes = [self.names.index(name) for name in cut["by"]]
            kept = [axis for axis in range(len(shape)) if axis not in axes]
            inner = [shape[axis] for axis in kept]
            cells = np.reshape(np.transpose(counts, axes + kept), (-1, *inner))
        else:
            cells = [np.take(counts, cut["value"], cut["axis"]), np.delete(counts, cut["value"], cut["axis"])]
        for i, each in enumerate(cells):
            own = told[i] if told else "published"
            yield each.shape, each if own == "published" else self.arrays[own].reshape(each.shape)

    def meet(self, box):
        """The pieces that a box meets, and what it is there."""
        cut = self.story["pieces"]
        low, high = list(box.low), list(box.high)
        if "by" in cut:
            axes = [self.names.index(name) for name in cut["by"]]
            kept = [axis for axis in range(len(low)) if axis not in axes]
            for part, place in enumerate(np.ndindex(*(self.shape[axis] for axis in axes))):
                if all(low[axis] <= at < high[axis] for axis, at in zip(axes, place, strict=True)):
                    yield self.parts[part], box.on(kept)
            return
        axis, value = cut["axis"], cut["value"]
        if low[axis] <= value < high[axis]:
            yield self.parts[0], box.on([other for other in range(len(low)) if other != axis])
        low[axis], high[axis] = low[axis] - (low[axis] > value), high[axis] - (high[axis] > value)
        if low[axis] < high[axis]:
            yield self.parts[1], Box(low, high)

    def answer(self, box, summed):
        return sum(part.answer(inside, inside.sum(part.published)) for part, inside in self.meet(box))

    def interval(self, box, stand, published, sure):
        middle = below = above = leans = squares = 0.0
        for part, inside in self.meet(box):
            summed = inside.sum(part.published)
            answer = part.answer(inside, summed)
            low, high = part.interval(inside, answer, answer, sure)
            lean, up = part.lean(inside, answer), high - answer
            down = max(answer - low, 0.0)
            middle, above = middle + answer, above + up**2
            below += (down if low > 0 else max(up, down)) ** 2
            leans, squares = leans + lean, squares + lean**2
        together = normal(sure) ** 2 * max(leans**2 - squares, 0.0)
        ends = whole(middle, math.sqrt(below + together), math.sqrt(above + together))
        return hold(*ends, published)

    def lean(self, box, published):
        answers = [
            (part, inside, part.answer(inside, inside.sum(part.published))) for part, inside in self.meet(box)
        ]
        return sum(answer + part.lean(inside, answer) for part, inside, answer in answers) - published


class NoiseOfParts(Parts, kind="noise of parts"):
    """Pieces whose models are noise alone."""

    interval, answer, lean = Model.interval, Model.answer, Model.lean

    def centre(self):
        parts, cut = [part.centre() for part in self.parts], self["pieces"]
        if any(part is None for part in parts):
            return None
        if "axis" in cut:
            return np.insert(parts[1], cut["value"], parts[0], axis=cut["axis"])
        axes = [self.names.index(name) for name in cut["by"]]
        order = axes + [axis for axis in range(len(self.shape)) if axis not in axes]
        return np.reshape(parts, [self.shape[axis] for axis in order]).transpose(np.argsort(order))

    def spread(self, box):
        found = [part.spread(inside) for part, inside in self.meet(box)]
        variance, largest = sum(each.variance for each in found), max(each.largest for each in found)
        alike = all(each.law == found[0].law for each in found)
        return Spread(variance, largest, sum(each.terms for each in found), found[0].law if alike else None)


class Selected(Independent, kind="selected"):
    """Keys that are shown because their count reached a threshold."""

    def interval(self, box, stand, published, sure):
        counts, threshold = self.counts, self["threshold"]
        inside = counts[tuple(map(slice, *box))].reshape(-1)
        ends = {s: [self.possible(y, threshold, s) for y in inside] for s in (sure, 1e-9)}
        if len(inside) == 1:
            low, high = ends[sure][0]
        else:
            lean = sum(y - low for y, (low, _) in zip(inside, ends[1e-9], strict=True))
            width = half(self.spread(box), sure)
            low, high = published - lean - width, published + width
        middle = (low + high) / 2
        moved = max(middle, 0.0) - middle
        return hold(max(low + moved, 0.0), max(high + moved, 0.0), published)

    def possible(self, y, threshold, sure):
        """The counts that a shown key may have."""
        width, beta = half(self.spread(Box([0], [1])), sure), 1 - sure
        if y < threshold:
            return y - width, y + width
        reach, least = 10 + 2 * continuous(self["law"], beta / 100), beta / 2
        c = np.arange(1, int(y + math.ceil(reach)) + 1)
        shown = tail(self["law"], threshold - c)
        fits = c[
            (tail(self["law"], y - c) / shown >= least) & (1 - tail(self["law"], y + 1 - c) / shown >= least)
        ]
        low, high = float(fits.min()), float(fits.max())
        return (min(low, y - width), max(high, y + width)) if len(self.shape) > 1 else (low, high)


def continuous(law, beta):
    """What one draw exceeds in size with probability β, in the continuum."""
    return (
        -math.log(beta) * size_of(law)
        if law["kind"] == "laplace"
        else normal(1 - beta) * math.sqrt(size_of(law))
    )


def tail(law, m):
    """Pr[draw ≥ m]."""
    m = np.asarray(m, float)
    if law["kind"] == "gaussian":
        return np.array([0.5 * math.erfc(each) for each in (m - 0.5) / math.sqrt(2 * size_of(law))])
    rate = 1 / size_of(law)
    return np.where(m >= 1, np.exp(-m * rate), 1 + math.exp(-rate) - np.exp(np.minimum(m - 1, 0) * rate)) / (
        1 + math.exp(-rate)
    )


class Mixture(Model, kind="mixture"):
    """Chances of boxes: a product of columns in every class."""

    def table(self, axes):
        starts = np.append(0, np.cumsum(self.shape))
        cells = self["weights"]
        for axis in axes:
            cells = cells[..., None, :] * self["conditionals"][starts[axis] : starts[axis + 1]]
        return cells.sum(-1)

    def chance(self, box):
        starts, chances = np.append(0, np.cumsum(self.shape)), self["weights"].astype(float)
        for start, a, b in zip(starts, *box, strict=False):
            chances = chances * self["conditionals"][start + a : start + b].sum(0)
        return float(np.maximum(chances, 0).sum())


class Raked(Model, kind="raked"):
    """An even cube, scaled to the published tables."""

    def chance(self, box):
        tables = near(self["tables"], self.tables, self.arrays)
        largest = [axes for axes in sorted(tables) if not any({*axes} < {*other} for other in tables)]
        total, cells = float(tables[()]), math.prod(self.shape)
        rounds = max(2, int(4e8 / cells / len(largest)))
        cube = rake(
            np.full(self.shape, total / cells), {axes: tables[axes] for axes in largest}, rounds, 1e-3
        )
        return max(box.sum(cube), 0.0) / total if total else 0.0


class Published(Model, kind="published"):
    """The mixture's chances, raked to the published pairs."""

    def chance(self, box):
        axes = box.bounded(self.shape)
        mixed = model(self["mixture"], self.arrays, self.shape)
        cells = math.prod(self.shape[axis] for axis in axes)
        tables = near(self["tables"], self.tables, self.arrays)
        pairs = {
            (i, j): tables[axes[i], axes[j]]
            for i, j in combinations(range(len(axes)), 2)
            if (axes[i], axes[j]) in tables
        }
        if not pairs or cells > 1 << 20:
            return mixed.chance(box)
        wanted = {pair: table / max(float(table.sum()), 1e-300) for pair, table in pairs.items()}
        return max(box.on(axes).sum(rake(mixed.table(axes) + 1e-6 / cells, wanted, 6, 1e-9)), 0.0)


def rake(cube, wanted, rounds, enough):
    """Scale a cube to tables, one after the other."""
    before = math.inf
    for done in range(rounds):
        furthest = 0.0
        for axes, table in wanted.items():
            now = cube.sum(tuple(axis for axis in range(cube.ndim) if axis not in axes), keepdims=True)
            table = table.reshape(now.shape)
            furthest = max(furthest, float(abs(now - table).max()))
            cube = cube * np.divide(table, now, out=np.zeros(now.shape), where=now > 0)
        if furthest <= enough or (done >= 60 and furthest > 0.999 * before):
            break
        before = furthest
    return cube


def sum_of(reader, number, low, high, sure=0.95):
    """The sum of a measure over a box, and the ends of its interval."""
    told, box = reader.told["measures"][number], Box(low, high)
    cells = reader.numbers(told["estimate"], "<f8", reader.shape)
    arrays = [reader.array(entry) for entry in told["model"]["arrays"]]
    steps = model(told["model"]["errors"], arrays, reader.shape, cells)
    centre, measure = told["centre"], told["measure"]
    step, total, variance, largest, stands = float(Fraction(measure.get("step", 1))), 0.0, 0.0, 0.0, 0.0
    for each, before, weight in ((steps, cells, 1), (reader.model, reader.before, centre)):
        summed = box.sum(before)
        value = (
            box.sum(reader.counts) if weight == centre and reader.told["polish"] else each.answer(box, summed)
        )
        stand, noise = each.noise(box, summed)
        total, stands = total + weight * value, stands + weight * stand
        variance, largest = variance + weight**2 * noise.variance, max(largest, abs(weight) * noise.largest)
    width = half(Spread(variance, largest), sure)
    low, high = step * min(stands - width, total), step * max(stands + width, total)
    lowest, highest = float(Fraction(measure["low"])), float(Fraction(measure["high"]))
    ends = 0.0 if lowest >= 0 else -math.inf, 0.0 if highest <= 0 else math.inf
    middle = (low + high) / 2
    moved = min(max(middle, ends[0]), ends[1]) - middle
    return step * total, *(min(max(end + moved, ends[0]), ends[1]) for end in (low, high))
