"""A second reader of releases: docs/format.md in NumPy and pyarrow alone; other kinds of models stand beside it."""
# mypy: ignore-errors

import base64
import hashlib
import json
import math
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


class Spread(NamedTuple):
    """The noise in an answer: its variance, its largest Laplace draw; or how many equal draws of which law."""

    variance: float
    largest: float
    terms: int = 0
    law: dict | None = None


class Reader:
    """An open release; ``answer`` takes the first cell and one past the last on every axis."""

    def __init__(self, path):
        self.file = pq.ParquetFile(path, page_checksum_verification=True)
        told = {key: text for key, text in self.file.metadata.metadata.items() if key != b"ARROW:schema"}
        rest = b"".join(key + b"\0" + told[key] + b"\0" for key in sorted(told) if key != b"digest")
        if hashlib.sha256(rest).hexdigest().encode() != told[b"digest"]:
            raise ValueError("damaged")
        self.told = json.loads(told[b"dphist"])
        if self.told["format"].split(".")[0] != "1":
            raise ValueError("a format of another major number")
        self.shape, form = tuple(self.told["shape"]), self.told.get("form")
        self.sparse = form == "sparse"
        if self.sparse:
            self.cells, self.values = (self.column(self.told["columns"][of]) for of in ("cell", "estimate"))
            return
        numbers, self.tables = self.column(self.told["estimate"]).astype(float), None
        if form == "tables":
            shapes = [[self.shape[axis] for axis in axes] for axes in self.told["tables"]]
            ends = np.cumsum([math.prod(each) for each in shapes])
            parts = zip(self.told["tables"], np.split(numbers, ends[:-1]), shapes, strict=True)
            self.tables = {tuple(axes): part.reshape(each) for axes, part, each in parts}
        story = self.told["model"]
        self.arrays = [self.array(entry) for entry in story["arrays"]]
        self.counts = None if self.tables else numbers.reshape(self.shape)
        before = self.arrays[story["counts"]].reshape(self.shape) if "counts" in story else self.counts
        names = [each["name"] for each in self.told["domain"]["attributes"]]
        self.model = model(story["errors"], self.arrays, self.shape, before, self.tables, names)
        self.guess, self.before = None, before
        if "guess" in story:
            self.guess = model(story["guess"], self.arrays, self.shape, None, self.tables)

    def column(self, name):
        return self.file.read([name]).column(0).to_numpy()

    @staticmethod
    def numbers(text, dtype, shape):
        size = math.prod(shape) * np.dtype(dtype).itemsize
        raw = pa.decompress(base64.b64decode(text), size, "zstd", asbytes=True)
        return np.frombuffer(raw, dtype).reshape(shape)

    def array(self, entry):
        dtype, shape = np.dtype(entry["dtype"]), entry["shape"]
        if "column" in entry:
            flat = self.column(entry["column"]).astype(dtype).reshape(shape)
        else:
            flat = self.numbers(entry["data"], dtype, shape)
        wide = flat.astype({"f": float, "b": bool}.get(dtype.kind, np.int64))
        return np.cumsum(wide, axis=0) if entry.get("steps") else wide

    def answer(self, low, high, sure=0.95):
        """The value, and the ends of the calibrated interval."""
        box = Box(low, high)
        if self.sparse:
            return self.of_sparse(box, sure)
        if self.tables is None:
            polished = bool(self.told["polish"])
            value, before = box.sum(self.counts), box.sum(self.before)
            value = value if polished else self.model.answer(box, value)
            return (value, *self.model.interval(box, before if polished else value, value, sure))
        axes = box.bounded(self.shape)
        if axes in self.tables:
            value = max(box.on(axes).sum(self.tables[axes]), 0.0)
        else:
            value = float(self.tables[()]) * self.guess.chance(box) if self.guess else math.nan
        value = self.model.answer(box, value)
        return (value, *self.model.interval(box, value, value, sure))

    def of_sparse(self, box, sure):
        inside, rest = np.ones(len(self.cells), bool), self.cells
        for a, b, n in zip(box.low[::-1], box.high[::-1], self.shape[::-1], strict=True):
            rest, place = np.divmod(rest, n)
            inside &= (place >= a) & (place < b)
        n, k, y = box.cells, int(inside.sum()), float(self.values[inside].sum())
        b = float(Fraction(self.told["scale"]))
        width = half(Spread(0, b, n, {"kind": "laplace", "size": b}), sure)
        sets = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        slopes = np.linspace(0.02, 0.998, 120)
        most = b * min((sets + math.log(2 / (1 - sure)) - k * np.log1p(-(slopes**2))) / slopes) if k else 0.0
        low = max(y - (width if n == k else most), 0.0)
        return y, low, max(low, y + width + (n - k) * (self.told["threshold"] - 1))


class Box(NamedTuple):
    """Cells from ``low`` up to before ``high``."""

    low: tuple
    high: tuple

    @property
    def cells(self):
        return math.prod(max(b - a, 0) for a, b in zip(self.low, self.high, strict=True))

    def sum(self, array):
        return float(array[tuple(map(slice, self.low, self.high))].sum())

    def on(self, axes):
        return Box([self.low[axis] for axis in axes], [self.high[axis] for axis in axes])

    def bounded(self, shape):
        return tuple(i for i, n in enumerate(shape) if (self.low[i], self.high[i]) != (0, n))

    def share(self, low, high):
        """The part of another box that lies in this one."""
        meet = [
            max(0, min(b, d) - max(a, c)) for a, b, c, d in zip(self.low, self.high, low, high, strict=True)
        ]
        return math.prod(meet) / math.prod(d - c for c, d in zip(low, high, strict=True))


# ---- how far noise reaches

SHARES = np.concatenate([np.linspace(0.0, 0.1, 12), np.linspace(0.15, 1.0, 18)])


def size_of(law):
    return float(Fraction(law["size"]))


def variance_of(law):
    return size_of(law) if law["kind"] == "gaussian" else 2 * size_of(law) ** 2


def scale_of(law):
    """Of the Laplace draws: 0 for Gaussian noise."""
    return 0.0 if law["kind"] == "gaussian" else size_of(law)


def normal(sure):
    return NormalDist().inv_cdf(0.5 + sure / 2)


def half(spread, sure):
    """The half-width of an interval."""
    if spread.law:
        return exact(spread.terms, spread.law["kind"], size_of(spread.law), 1 - sure)
    share = min(2 * spread.largest**2 / spread.variance, 1.0) if spread.largest and spread.variance else 0.0
    return math.sqrt(spread.variance) * max(matched(share, 1 - sure), normal(sure))


def exact(terms, kind, size, beta):
    """The least s that a sum of so many discrete draws exceeds in size with probability β at most."""
    gaussian, law = kind == "gaussian", {"kind": kind, "size": size}
    deviation, scale = math.sqrt(terms * variance_of(law)), math.sqrt(variance_of(law) / 2)
    n = 1 << math.ceil(math.log2(2 * max(9 * deviation, 40 * scale) + 8))
    if terms == 0:
        return 0.0
    if n > 1 << 20:
        return math.ceil(deviation * matched(0.0 if gaussian else 1 / terms, beta))
    k = np.arange(n)
    k = np.minimum(k, n - k)
    one = np.exp(-(k**2) / 2 / size) if gaussian else np.exp(-k / size)
    sums = np.fft.irfft(np.fft.rfft(one / one.sum()).real ** terms, n)
    beyond = 2 * np.maximum(sums[1 : n // 2], 0)[::-1].cumsum()[::-1] + 1e-15
    return float(np.argmax(beyond <= beta))


def matched(share, beta):
    """The quantile of a sum of 1/share equal Laplace draws in deviations, between those of a table."""
    i = min(int(np.searchsorted(SHARES, share, "right")) - 1, len(SHARES) - 2)
    a, b = SHARES[i : i + 2]
    one, other = quantile(float(a), beta), quantile(float(b), beta)
    return one + (other - one) * (share - a) / (b - a)


@lru_cache
def quantile(share, beta):
    """A sum of m = 1/share Laplace draws is normal with a variance of Gamma's law; 4,000 even steps of it."""
    if share == 0:
        return normal(1 - beta)
    roots, low, high = np.sqrt(gammas(1 / share) * share * 2), 0.0, 60.0
    while high - low > 1e-14 * high:
        q = (low + high) / 2
        tail = sum(map(math.erfc, (q / roots).tolist())) / len(roots)
        low, high = (q, high) if tail > beta else (low, q)
    return low


@lru_cache
def gammas(m):
    """The quantiles of Gamma's law of shape m at (i + ½)/4,000, by Newton's steps; terms beyond 60 + 2m are nothing."""
    levels, n = (np.arange(4000) + 0.5) / 4000, np.arange(1, 60 + 2 * round(m))[:, None]
    z = np.array([NormalDist().inv_cdf(level) for level in levels])
    x = m * np.maximum(1 - 1 / (9 * m) + z / np.sqrt(9 * m), 0.02) ** 3
    for _ in range(30):
        density = np.exp((m - 1) * np.log(x) - x - math.lgamma(m))
        below = density * x / m * (1 + np.cumprod(x / (m + n), axis=0).sum(axis=0))
        step = (below - levels) / density
        x = np.clip(x - step, x / 2, 2 * x)
        if np.abs(step / x).max() < 1e-12:
            break
    return x


def around(stand, width, published):
    middle = max(stand, 0.0)
    return hold(max(middle - width, 0.0), middle + width, published)


def hold(low, high, published):
    return min(low, max(published, 0.0)), max(high, published)


def whole(published, below, above):
    """The nearest whole counts, with what is published between them."""
    low = min(round(published - below), math.floor(published + 1e-6))
    return max(low, 0.0), max(round(published + above), math.ceil(published - 1e-6), 0.0)


KINDS = {}


def model(story, arrays, shape, counts=None, tables=None, names=()):
    """The model of a kind, about cells of this shape."""
    if story["model"] not in KINDS:
        raise ValueError("a model of an unknown kind")
    return KINDS[story["model"]](story, arrays, tuple(shape), counts, tables, names)


class Model:
    """The fields of a model, and what it is about. Most are noise, told by its spread."""

    def __init_subclass__(cls, kind=None):
        if kind:
            KINDS[kind] = cls

    def __init__(self, story, arrays, shape, counts, tables, names):
        self.story, self.arrays, self.shape, self.names, self.tables = story, arrays, shape, names, tables
        told = story.get("counts")
        self.published, self.counts = counts, None
        if isinstance(told, str | int):
            self.counts = counts if told == "published" else arrays[told].astype(float).reshape(shape)

    def __getitem__(self, field):
        """An array, or a field of another kind."""
        told = self.story[field]
        return self.arrays[told] if type(told) is int and field not in ("threshold",) else told

    def inner(self, field, cells):
        """A model inside, about so many groups or cells in a row."""
        return model(self.story[field], self.arrays, (cells,))

    def answer(self, box, summed):
        return summed

    def centre(self):
        """Cells that intervals stand on, where these are not the published ones."""
        told = self.story.get("centre")
        return None if told is None else self.arrays[told].reshape(self.shape)

    def interval(self, box, stand, published, sure):
        centre = self.centre()
        return around(stand if centre is None else box.sum(centre), half(self.spread(box), sure), published)

    def noise(self, box, summed):
        """The number that sums of measures stand on, and its noise."""
        centre = self.centre()
        return summed if centre is None else box.sum(centre), self.spread(box)

    def lean(self, box, published):
        """How far what is expected lies beyond what is published."""
        return 0.0


class Independent(Model, kind="independent"):
    def spread(self, box):
        return Spread(box.cells * variance_of(self["law"]), scale_of(self["law"]), box.cells, self["law"])


class NoisyCells(Independent, kind="noisy cells"):
    def spread(self, box):
        spread = super().spread(box)
        return spread if self.story["exact"] else spread._replace(law=None)
