"""What the explorer shows of one release, or of two side by side: an answer, a figure, and the words for both.

The question in words is the whole state, so an address can be kept, sent on, or pasted into `dphist query`. A dragged
range arrives as cells and leaves as words.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dphist.errors import QueryError
from dphist.model.domain import Attribute, Nominal
from dphist.model.domain.ordinal import whole_cells
from dphist.model.domain.scales import Bins, Dates, Integers, Steps
from dphist.model.domain.space import Span, pieces, union
from dphist.model.phrases import counted
from dphist.release import Release
from dphist.release.answers import bound
from dphist.release.asking import boxes, read_conditions, read_stretches
from dphist.report.cuts import Cuts, cut, name_span
from dphist.report.figures import Colour, most_bars, most_squares, specification
from dphist.report.page import embed
from dphist.report.tables import Table, measure_lines, tabulate
from dphist.report.wording import bounds, caveats, names, python, question

_LARGEST_DOWNLOAD = 100_000
_MOST_LISTED = 300
_PARAMETERS = {
    "q", "show", "by", "window", "node", "confidence", "interval", "colour", "axis", "cells", "from", "to", "release",
    "other", "bins",
}  # fmt: skip
CONFIDENCES = (0.8, 0.9, 0.95, 0.99)
_DRAWN_WHOLE = "Bins that the question cuts are drawn whole. "


@dataclass(frozen=True)
class View:
    """One look at a release: what is chosen, and what is drawn."""

    release: Release
    chosen: dict[str, list[Span]]
    show: str
    by: str | None
    window: Span | None
    node: int | None
    confidence: float
    guaranteed: bool = False
    colour: Colour = "estimate"
    cut: str = ""
    """The question in its own words, if it cuts bins and a guess was asked for; ``chosen`` has all that it touches."""

    @staticmethod
    def read(release: Release, asked: Mapping[str, str]) -> View:
        """Read a view from the parameters of a request; whatever makes no sense is refused with a reason."""
        domain = release.domain
        for key in asked:
            if key not in _PARAMETERS:
                raise QueryError(f"there is no parameter {key[:40]!r}")
        text = asked.get("q", "")
        cut = _one_of(asked, "bins", ("whole", "spread")) == "spread" and "axis" not in asked
        read = {name: pieces(each) for name, each in read_stretches(text, domain).items()} if cut else {}
        cut = any(share < 1.0 for each in read.values() for _, _, share in each)
        chosen = (
            {name: union((start, stop) for start, stop, _ in each) for name, each in read.items()}
            if cut
            else read_conditions(text, domain)
        )
        if "axis" in asked:
            attribute = _attribute(release, asked["axis"])
            spans = _change(attribute, asked)
            chosen.pop(attribute.name, None)
            if spans != [(0, attribute.size)]:
                chosen[attribute.name] = spans
        for name, spans in chosen.items():
            if not any(start < stop for start, stop in spans):
                raise QueryError(
                    f"{name}: no value lies in this range; is it reversed, or outside the schema?"
                )
        show = _attribute(release, asked.get("show") or domain.names[0])
        by = _attribute(release, asked["by"]) if asked.get("by") else None
        if by is not None and by.name == show.name:
            by = None
        window = _window(show, asked.get("window", ""))
        node = _group(show, asked.get("node", ""))
        confidence = _confidence(asked.get("confidence") or "0.95")
        guaranteed = _one_of(asked, "interval", ("calibrated", "guaranteed")) == "guaranteed"
        colour: Colour = (
            "uncertainty"
            if _one_of(asked, "colour", ("estimate", "uncertainty")) == "uncertainty"
            else "estimate"
        )
        return View(
            release, chosen, show.name, by.name if by else None, window, node, confidence, guaranteed, colour,
            text if cut else "",
        )  # fmt: skip

    @property
    def words(self) -> str:
        """The question as `dphist query` takes it."""
        if self.cut:
            return self.cut
        text = question(self.release.domain, self.chosen)
        # What cannot be read back must not be handed out.
        read_conditions(text, self.release.domain)
        return text

    def table(self) -> Table:
        """Give the numbers that are drawn."""
        domain = self.release.domain
        show = domain.attribute(self.show)
        if self.by is None:
            cuts = [cut(show, most_bars(show), window=self.window, node=self._node(show))]
        else:
            by = domain.attribute(self.by)
            most = most_squares(show, by)
            cuts = [cut(show, most[0], window=self.window, node=self._node(show)), cut(by, most[1])]
        return tabulate(
            self.release, cuts, self.chosen, confidence=self.confidence, guaranteed=self.guaranteed
        )

    def _node(self, show: Attribute) -> int | None:
        if not isinstance(show, Nominal):
            return None
        return (None if self.by else 0) if self.node is None else self.node

    def to_json(self) -> dict[str, Any]:
        """Give everything the page shows, as plain values."""
        domain = self.release.domain
        words = self.words
        kind: Literal["calibrated", "guaranteed"] = "guaranteed" if self.guaranteed else "calibrated"
        answer = (
            self.release.answer(self.cut, confidence=self.confidence, interval=kind, bins="spread")
            if self.cut
            else self.release.answer(boxes(self.chosen, domain), confidence=self.confidence, interval=kind)[0]
        )
        numbers = self.table()
        show = domain.attribute(self.show)
        drawn = specification(
            numbers,
            selected=self.chosen.get(self.show),
            brush=not self.by and not isinstance(show, Nominal),
            colour=self.colour,
        )
        return {
            "question": words,
            "python": f'release.answer({self.cut!r}, bins="spread", interval="{kind}")'
            if self.cut
            else python(domain, self.chosen, guaranteed=self.guaranteed),
            "answer": {
                "value": bound(answer.value), "low": bound(answer.low), "high": bound(answer.high),
                "confidence": answer.confidence, "method": answer.method, "details": answer.details,
                "measured": answer.measured,
                "text": str(answer), "caveats": caveats(answer, self.release.guarantee),
            },
            "measures": [] if self.cut else measure_lines(self.release, boxes(self.chosen, domain), self.confidence),
            "show": self.show,
            "by": self.by,
            "kind": show.kind,
            "confidence": self.confidence,
            "interval": kind,
            "bins": "spread" if self.cut else "whole",
            "colour": self.colour,
            "window": list(self.window) if self.window else None,
            "node": self.node,
            "crumbs": _crumbs(show, self._node(show)),
            "conditions": {
                attribute.name: _condition(attribute, self.chosen.get(attribute.name))
                for attribute in domain.attributes
            },
            "intervals": (_DRAWN_WHOLE if self.cut else "")
            + ("" if self.by and numbers.answers.measured.all() else numbers.intervals),
            "spec": drawn,
            "rows": _rows(numbers, show) if not self.by else [],
        }  # fmt: skip

    def to_csv(self) -> str:
        """Give the selected cells of what is drawn, one row each, as CSV; bounds are empty where none are known."""
        cuts = []
        drawn = [self.release.domain.attribute(name) for name in (self.show, self.by) if name]
        chosen = [self.chosen.get(each.name, [(0, each.size)]) for each in drawn]
        if math.prod(sum(stop - start for start, stop in spans) for spans in chosen) > _LARGEST_DOWNLOAD:
            raise QueryError(
                f"this would be more than {_LARGEST_DOWNLOAD:,} rows; choose a range first, "
                "or read the release file itself, which has them all"
            )
        for attribute, wanted in zip(drawn, chosen, strict=True):
            cells = [cell for span in wanted for cell in range(*span)]
            labels = tuple(attribute.labels[cell] for cell in cells)
            cuts.append(
                Cuts(attribute, tuple((cell, cell + 1) for cell in cells), labels, (None,) * len(cells))
            )
        numbers = tabulate(
            self.release, cuts, self.chosen, confidence=self.confidence, guaranteed=self.guaranteed
        )
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*(each.attribute.name for each in cuts), "estimate", "low", "high"])
        for row in numbers.rows():
            writer.writerow([*row["labels"].values(), row["estimate"], row["low"], row["high"]])
        return out.getvalue()


def compare(
    title: str, one: Release, other_title: str, other: Release, asked: Mapping[str, str]
) -> dict[str, Any]:
    """Ask both releases the same, of attributes they share; say whether noise alone could explain the difference."""
    both = [name for name in one.domain.names if name in other.domain.names]
    if not both:
        raise QueryError("these releases have no attribute in common")
    question = {key: value for key, value in asked.items() if key in ("q", "show", "confidence")}
    question.setdefault("show", both[0])
    if question["show"] not in both:
        raise QueryError(f"the releases share only {', '.join(both)}")
    shown = [View.read(release, question).to_json() for release in (one, other)]
    first, second = (each["answer"] for each in shown)
    # Neither has a number where a question lies in no published table.
    known = first["value"] is not None and second["value"] is not None
    measured = first["measured"] and second["measured"]
    bounded = first["low"] is not None and second["low"] is not None
    apart = bounded and (first["low"] > second["high"] or second["low"] > first["high"])
    return {
        "question": shown[0]["question"],
        "show": question["show"],
        "both": both,
        "confidence": shown[0]["confidence"],
        "difference": first["value"] - second["value"] if known else None,
        "apart": apart,
        "measured": measured,
        "sides": [
            {
                "title": name,
                "answer": each["answer"],
                "guarantee": release.guarantee.describe(),
                "spec": embed(each["spec"]),
                "id": f"side{place}",
            }
            for place, (name, release, each) in enumerate(
                ((title, one, shown[0]), (other_title, other, shown[1]))
            )
        ],
    }


def control(attribute: Attribute) -> dict[str, Any]:
    """Say how a page may ask for a condition on an attribute: which inputs, with which bounds or choices."""
    made: dict[str, Any] = {"name": attribute.name, "kind": attribute.kind, "size": attribute.size}
    if isinstance(attribute, Nominal):
        return {**made, "input": "tree", "tree": _branch(attribute, 0)}
    scale = attribute.scale
    if isinstance(scale, Integers):
        first, last = scale.values[0], scale.values[-1]
        return {**made, "input": "number", "low": first, "high": last, "step": scale.values.step}
    if isinstance(scale, Dates):
        return {**made, "input": "date", "low": str(scale.begin(0)), "high": str(scale.stop)}
    if isinstance(scale, Bins):
        return {**made, "input": "number", "low": scale.edges[0], "high": scale.edges[-1], "step": "any"}
    if isinstance(scale, Steps) and scale.size <= _MOST_LISTED:
        return {**made, "input": "choice", "choices": list(scale.categories)}
    return {**made, "input": "text"}


def _branch(attribute: Nominal, node: int) -> list[dict[str, Any]]:
    tree = attribute.hierarchy
    below = range(int(tree.children[node]), int(tree.children[node + 1]))
    return [
        {
            "name": tree.names[i],
            "start": int(tree.start[i]),
            "stop": int(tree.stop[i]),
            # A very long list is asked for in words instead.
            "below": _branch(attribute, i) if attribute.size <= _MOST_LISTED else [],
        }
        for i in below[:_MOST_LISTED]
    ]


def _attribute(release: Release, name: str) -> Attribute:
    if name not in release.domain.names:
        raise QueryError(f"there is no attribute {name[:80]!r}; there are {', '.join(release.domain.names)}")
    return release.domain.attribute(name)


def _change(attribute: Attribute, asked: Mapping[str, str]) -> list[Span]:
    if "cells" in asked:
        return _cells(attribute, asked["cells"])
    if isinstance(attribute, Nominal):
        raise QueryError(f"{attribute.name}: its categories have no order; choose them one by one")
    low, high = (_own(attribute, asked.get(side, "")) for side in ("from", "to"))
    if low is None and high is None:
        return [(0, attribute.size)]
    if not isinstance(attribute.scale, Bins):
        return [attribute.span(low, high)]
    # The fields hold edges, as they show them: up to one is below it, but for the last.
    below = high is not None and high < attribute.scale.edges[-1]
    return whole_cells(attribute, [attribute.places(low, high, below=below)])


def _own(attribute: Attribute, text: str) -> Any:
    """Read a bound in the attribute's own values."""
    if not text.strip():
        return None
    scale = getattr(attribute, "scale", None)
    if not isinstance(scale, Integers | Bins):
        return text.strip()
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise QueryError(f"{attribute.name}: a bound must be a number") from None


def _cells(attribute: Attribute, text: str) -> list[Span]:
    if not text:
        return [(0, attribute.size)]
    spans = []
    for part in text.split(","):
        start, dash, stop = part.partition("-")
        if not dash:
            raise QueryError("cells must be written start-stop")
        pair = _number(start, "cells"), _number(stop, "cells")
        if not 0 <= pair[0] < pair[1] <= attribute.size:
            raise QueryError(
                f"{attribute.name}: cells must be increasing and inside its {counted(attribute.size, 'cell')}"
            )
        spans.append(pair)
    return union(spans)


def _window(show: Attribute, text: str) -> Span | None:
    if not text or isinstance(show, Nominal):
        return None
    return _cells(show, text)[0]


def _group(show: Attribute, text: str) -> int | None:
    if not text:
        return None
    node = _number(text, "node")
    if not isinstance(show, Nominal) or node >= show.hierarchy.size:
        raise QueryError(f"{show.name}: there is no such group")
    return node


def _number(text: str, what: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise QueryError(f"{what} must be a whole number")
    return int(text)


def _one_of(asked: Mapping[str, str], key: str, known: tuple[str, ...]) -> str:
    """One of a few words; the first of them by default."""
    given = asked.get(key) or known[0]
    if given not in known:
        raise QueryError(f"{key} must be {' or '.join(known)}")
    return given


def _confidence(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise QueryError("confidence must be a number") from None
    if not 0.5 <= value <= 0.999999:
        raise QueryError("confidence must lie between 0.5 and 0.999999, for example 0.95")
    return value


def _condition(attribute: Attribute, spans: list[Span] | None) -> dict[str, Any]:
    """Say what is chosen of an attribute: as cells, in words, and as the two bounds if it is one range."""
    if not spans:
        return {"spans": None, "words": "all", "from": "", "to": ""}
    listed = (
        names(attribute, spans)
        if isinstance(attribute, Nominal)
        else [name_span(attribute, span) for span in spans]
    )
    words = ", ".join(listed[:6]) + (", …" if len(listed) > 6 else "")
    made = {"spans": spans, "words": words, "from": "", "to": ""}
    if not isinstance(attribute, Nominal) and len(spans) == 1 and spans[0][1] <= attribute.scale.size:
        low, high = bounds(attribute, spans[0])
        made |= {"from": str(low), "to": str(high)}
    return made


def _crumbs(show: Attribute, node: int | None) -> list[dict[str, Any]]:
    """Give the way from the root of a hierarchy to the group that is open."""
    if not isinstance(show, Nominal) or node is None:
        return []
    tree = show.hierarchy
    path = []
    while node >= 0:
        path.append({"node": node, "name": f"all of {show.name}" if node == 0 else tree.names[node]})
        node = int(tree.parent[node])
    return path[::-1]


def _rows(numbers: Table, show: Attribute) -> list[dict[str, Any]]:
    cuts = numbers.cuts[0]
    fanout = show.hierarchy.fanout if isinstance(show, Nominal) else None
    rows = []
    for i, row in enumerate(numbers.rows()):
        node = cuts.nodes[i]
        rows.append(
            {
                "label": cuts.labels[i], "start": cuts.spans[i][0], "stop": cuts.spans[i][1],
                "node": node, "opens": bool(fanout is not None and node is not None and fanout[node] > 0),
                "estimate": row["estimate"], "low": row["low"], "high": row["high"], "measured": row["measured"],
            }
        )  # fmt: skip
    return rows
