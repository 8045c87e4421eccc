"""Kinds of noise that are sums of independent draws, for the second reader."""
# mypy: ignore-errors

import math

import numpy as np
from second_reader import Box, Model, Spread, scale_of, variance_of


class PieceNoise(Model, kind="pieces"):
    def spread(self, box):
        labels, scales = self["labels"].reshape(self.shape), self["scales"]
        sizes = np.bincount(labels.reshape(-1), minlength=len(scales))
        taken = np.bincount(labels[tuple(map(slice, *box))].reshape(-1), minlength=len(scales))
        return Spread(float((2 * (scales * taken / np.maximum(sizes, 1)) ** 2).sum()), float(scales.max()))


class TreeNoise(Model, kind="tree"):
    def spread(self, box):
        return Tree(self.story["tree"], self.arrays).spread(box)

    def centre(self):
        return Tree(self["tree"], self.arrays).cells(self.shape) if self["projected"] else None


class Leaves(Model, kind="leaves"):
    def spread(self, box):
        cuts = self.story["cuts"]
        low, high, left = (self.arrays[cuts[name]] for name in ("low", "high", "left"))
        cell, leaf = self.story["cell_scale"], self.story["leaf_scale"]
        variance, largest = 0.0, [0.0]
        for pull, a, b in zip(self["pull"], low[left < 0], high[left < 0], strict=True):
            n = math.prod(b - a)
            s = box.share(a, b) * n
            share = pull * s
            variance += 2 * (share * leaf) ** 2 + 2 * cell**2 * (s * (1 - share) ** 2 + (n - s) * share**2)
            largest += [share * leaf, abs(1 - share) * cell, 0 if s == n else share * cell] if s else []
        return Spread(variance, 0.0 if self.story["gaussian"] else max(largest))


class Dense(Model, kind="dense"):
    def spread(self, box):
        inside = slice(box.low[0], box.high[0])
        variance = max(float(self["covariance"][inside, inside].sum()), 0.0)
        return Spread(variance, math.sqrt(variance / 2))


class Groups(Model, kind="groups"):
    def spread(self, box):
        sizes, (a,), (b,) = self["sizes"], box.low, box.high
        ends = np.append(0, np.cumsum(sizes))
        first, last = int(np.searchsorted(ends, a, "right")) - 1, int(np.searchsorted(ends, b, "left"))
        head = (min(ends[first + 1], b) - a) / sizes[first]
        tail = 1.0 if last - first <= 1 else (b - max(ends[last - 1], a)) / sizes[last - 1]
        deviation = largest = 0.0
        for i, j in ((0, 0), (1, 0), (0, 1), (1, 1)):
            weight = (1 - head if i else head) * (1 - tail if j else tail)
            if weight > 0 and last - j > first + i:
                part = self.inner("inner", len(sizes)).spread(Box([first + i], [last - j]))
                deviation += weight * math.sqrt(part.variance)
                largest += weight * part.largest
        return Spread(deviation**2, min(largest, deviation / math.sqrt(2)))


class GroupBound(Model, kind="group bound"):
    def spread(self, box):
        groups = self.inner("inner", len(self["sizes"]))
        inner = [groups.spread(Box([g], [g + 1])).variance for g in range(len(self["sizes"]))]
        deviation = box.sum((np.sqrt(inner) / self["sizes"])[self["labels"]].reshape(self.shape))
        return Spread(deviation**2, deviation / math.sqrt(2))


class PrefixSums(Model, kind="prefix sums"):
    def spread(self, box):
        (a,), (b,), weights = box.low, box.high, self["weights"]
        draws = weights[b - 1 :: -1][:b].copy() if b else np.zeros(1)
        draws[:a] -= weights[a - 1 :: -1][:a] if a else 0
        return Spread(
            float(draws @ draws) * variance_of(self["law"]), float(abs(draws).max()) * scale_of(self["law"])
        )


class Runs(Model, kind="runs"):
    def spread(self, box):
        rows = np.arange(math.prod(self.shape)).reshape(self.shape)[tuple(map(slice, *box))]
        row = self.inner("runs", math.prod(self.shape))
        runs = [row.spread(Box([each[0]], [each[-1] + 1])) for each in rows.reshape(-1, rows.shape[-1])]
        if len(self.shape) == 1:
            return runs[0]
        deviation = sum(math.sqrt(run.variance) for run in runs)
        return Spread(deviation**2, min(sum(run.largest for run in runs), deviation / math.sqrt(2)))

    def centre(self):
        return self.counts


class Wavelets(Model, kind="wavelets"):
    def spread(self, box):
        variance, largest = variance_of(self["law"]), scale_of(self["law"])
        for axis, a, b in zip(self.story["axes"], *box, strict=True):
            weights = wavelet(axis, self.arrays, a, b)
            variance, largest = variance * float(weights @ weights), largest * float(abs(weights).max())
        return Spread(variance, largest)


class Waves(Model, kind="waves"):
    def spread(self, box):
        shape, scale, low, high, runs = self.story["shape"], self.story["scale"], *box, 1
        if len(shape) < len(low):
            # As runs of the cells in one row.
            rows = np.arange(math.prod(self.shape)).reshape(self.shape)[tuple(map(slice, *box))].reshape(-1)
            runs = 1 + int((np.diff(rows) > 1).sum())
            low, high = [int(rows[0])], [int(rows[0]) + len(rows) // runs]
        variance, largest = 2 * scale**2, scale
        for n, keep, a, b in zip(shape, self.story["keep"], low, high, strict=True):
            m, cells, length = np.arange(1, n)[:, None], np.arange(a, b), b - a
            if self.story["basis"] == "fourier":
                kept = np.minimum(m, n - m) < keep
                each = abs(np.exp(2j * np.pi * m * cells / n).sum(1)) ** 2 / n
            else:
                kept = m < keep
                each = 2 / n * np.cos(np.pi * m * (cells + 0.5) / n).sum(1) ** 2
                if runs > 1:
                    each = 2 / n * (np.sin(np.pi * m * length / 2 / n) / np.sin(np.pi * m / 2 / n))[:, 0] ** 2
            variance *= length**2 / n + float(each[kept[:, 0]].sum())
            largest *= length * math.sqrt((2 if keep > 1 else 1) / n)
        return Spread(variance * runs**2, min(largest, math.sqrt(variance / 2)) * runs)


def wavelet(axis, arrays, a, b):
    """What the cells from a to b weigh each coefficient by."""
    if axis.get("haar") is False:
        return np.ones(b - a)
    if axis.get("haar"):
        n = 1 << (axis["size"] - 1).bit_length()
        cells = np.zeros(n)
        cells[a:b] = 1
        levels = [cells.reshape(-1, 2, 1 << k).sum(2) / (2 << k) for k in range(n.bit_length() - 1)]
        return np.concatenate([[(b - a) / n], *(each[:, 0] - each[:, 1] for each in levels)])
    parent, leaves = arrays[axis["parent"]], arrays[axis["leaves"]]
    share, kids = np.zeros(len(parent)), [[] for _ in parent]
    share[leaves[a:b]] = 1
    for node in range(len(parent) - 1, 0, -1):
        if kids[node]:
            share[node] = np.mean(share[kids[node]])
        # An only child is the same cells: it stands for its parent.
        kids[parent[node]] += [node]
    share[0] = np.mean(share[kids[0]]) if kids[0] else share[0]
    wide = [
        2 * (len(each) - 1) / len(each) if axis["calibration"] == "paper" else 1
        for each in kids
        if each
        for _ in each
    ]
    return np.array(
        [share[0]]
        + [
            w * (share[c] - share[i])
            for (i, c), w in zip([(i, c) for i, each in enumerate(kids) for c in each], wide, strict=True)
        ]
    )


class Tree:
    """A measured tree: least squares over its blocks."""

    def __init__(self, story, arrays):
        self.parent, self.low, self.high, value, self.own = (
            arrays[story[name]] for name in ("parent", "low", "high", "value", "variance")
        )
        self.kind, nodes = story["kind"], len(self.parent)
        self.kids = [np.flatnonzero(self.parent == i) for i in range(nodes)]
        pool = arrays[story["pool"]] if "pool" in story else np.zeros(nodes)
        self.size = np.prod(self.high - self.low, axis=1).astype(float)
        self.known = np.isfinite(self.own)
        self.value = np.where(self.known, value, 0.0)
        self.best, self.spare = self.value.copy(), self.own.astype(float)
        self.below = np.zeros(nodes)
        for i in reversed(range(nodes)):
            kids = self.kids[i]
            if len(kids):
                total, self.below[i] = self.best[kids].sum(), self.spare[kids].sum()
                self.size[i] = self.size[kids].sum() if pool[i] else self.size[i]
                own, spread = self.own[i], self.below[i]
                if np.isinf(own) or spread == 0:
                    self.best[i], self.spare[i] = total, spread
                elif np.isfinite(spread):
                    self.best[i] = (total * own + self.value[i] * spread) / (own + spread)
                    self.spare[i] = own * spread / (own + spread)

    def cells(self, shape):
        """Counts of least squares: every leaf's total, spread evenly."""
        totals, out = (
            self.best.copy(),
            np.zeros(shape if self.low.shape[1] == len(shape) else math.prod(shape)),
        )
        for i, kids in enumerate(self.kids):
            if len(kids):
                gap, spread, unknown = (
                    totals[i] - totals[kids].sum(),
                    self.spare[kids],
                    np.isinf(self.spare[kids]),
                )
                part = unknown if unknown.any() else spread if spread.sum() else np.ones(len(kids))
                totals[kids] += gap * part / part.sum()
            else:
                out[tuple(map(slice, self.low[i], self.high[i]))] = totals[i] / self.size[i]
        return out.reshape(shape)

    def spread(self, box):
        nodes = range(len(self.parent))
        share = np.array([box.share(self.low[i], self.high[i]) for i in nodes])
        met = np.array(
            [
                all(c < b and a < d for a, b, c, d in zip(*box, self.low[i], self.high[i], strict=True))
                for i in nodes
            ]
        )
        held = np.array(
            [
                all(a <= c and d <= b for a, b, c, d in zip(*box, self.low[i], self.high[i], strict=True))
                for i in nodes
            ]
        )
        a, rest, reach, widest = (
            share.copy(),
            np.zeros(len(share)),
            np.zeros(len(share)),
            np.zeros(len(share)),
        )
        heft = np.divide(
            np.sqrt(self.own / 2), self.own, out=np.zeros(len(share)), where=self.known & (self.own > 0)
        )
        for i in reversed(nodes):
            kids, s, reach[i] = self.kids[i], self.below[i], heft[i]
            if len(kids) and 0 < s < np.inf:
                v = self.spare[kids]
                a[i] = a[kids] @ v / s
                rest[i] = rest[kids].sum() + max(0.0, a[kids] ** 2 @ v - s * a[i] ** 2)
                reach[i], widest[i] = max(heft[i], max(v / s * reach[kids])), max(v * reach[kids])

        def heaviest(i, covariance):
            kids, s = self.kids[i], self.below[i]
            if held[i] or not met[i] or not len(kids):
                return abs(covariance) * reach[i]
            found = abs(covariance) * heft[i]
            for c in kids:
                if met[c] and not held[c]:
                    each = heaviest(c, self.spare[c] * (a[c] - a[i] + covariance / s))
                else:
                    each = abs(held[c] - a[i] + covariance / s) * widest[i]
                found = max(found, each)
            return found

        variance = rest[0] + a[0] ** 2 * self.spare[0]
        largest = 0.0 if self.kind == "gaussian" else heaviest(0, a[0] * self.spare[0])
        return Spread(float(variance), min(largest, math.sqrt(variance / 2)))
