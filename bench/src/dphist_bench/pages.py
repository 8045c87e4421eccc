"""Pages from readings: what a paper reported, what we get, why they differ, and whether its claims hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dphist.errors import InputError
from dphist.release.atomic import atomic
from dphist_bench import results
from dphist_bench.catalogue import GROUPS, Group
from dphist_bench.experiment import Claim, Experiment, Finding
from dphist_bench.results import Results

_WORDS = {True: "confirmed", False: "**refuted**", None: "undecided"}


@dataclass(frozen=True)
class Verdict:
    """A claim of a paper and what our readings say of it: beside competitors as published, and as we ship them."""

    claim: Claim
    finding: Finding
    shipped: Finding | None = None

    def line(self) -> str:
        """One row of a table of claims."""
        words = [_WORDS[self.finding.holds], "–" if self.shipped is None else _WORDS[self.shipped.holds]]
        figures = _figures(self.finding, self.claim.why)
        if self.shipped is not None:
            figures = f"As published: {figures} As shipped: {_figures(self.shipped, self.claim.why_shipped)}"
        return f"| {self.claim.says} ({self.claim.where}) | {words[0]} | {words[1]} | {figures} |"


def _figures(finding: Finding, why: str) -> str:
    return f"{finding.figures}.{f' {why}' if why and finding.holds is False else ''}"


_CLAIMS = ["| claim | competitors as published | as we ship them | figures |", "|---|---|---|---|"]
_COLUMNS = (
    "A claim is judged beside competitors as their authors published them. Where we ship a better form of one (its "
    "budgets, its least squares, no negative counts), the claim is judged beside that as well; a dash: nothing of ours "
    "is in the comparison."
)


def verdicts(experiment: Experiment, found: Results) -> list[Verdict]:
    """Check every claim of an experiment on its readings."""
    return [
        Verdict(
            claim,
            _judged(claim.check, found),
            None if claim.shipped is None else _judged(claim.shipped, found),
        )
        for claim in experiment.claims
    ]


def _judged(check: Callable[[Results], Finding], found: Results) -> Finding:
    try:
        return check(found)
    except (ArithmeticError, LookupError, ValueError, InputError):
        # A run that was stopped half-way lacks some of the points that a check compares.
        return Finding(None, "not all of it has been measured")


def write(found: Mapping[str, tuple[Experiment, Results]], folder: Path) -> list[Path]:
    """Write one page a group and one that counts their claims; experiments without readings are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = []
    judged: dict[str, list[Verdict]] = {}
    for group, about in GROUPS.items():
        mine = [pair for name, pair in found.items() if name.partition("/")[0] == group]
        if not mine:
            continue
        judged[group] = [verdict for experiment, one in mine for verdict in verdicts(experiment, one)]
        pages.append(_save(folder / f"{group}.md", _page(about, mine, judged[group], folder)))
    pages.append(_save(folder / "papers.md", _papers(judged)))
    return pages


def _page(
    group: Group, pairs: Sequence[tuple[Experiment, Results]], judged: Sequence[Verdict], folder: Path
) -> str:
    lines = [
        f"# {group.title}",
        "",
        "Generated from readings by `dphist bench report`; do not edit by hand.",
        "",
    ]
    if judged:
        lines += [f"## {group.claims}", ""]
        lines += [_COLUMNS, ""] if group.paper else []
        lines += [*_table(judged, group), ""]
    for experiment, found in pairs:
        lines += [f"## {experiment.title}", "", *_said("The paper", group, experiment.reported)]
        for place, view in enumerate(experiment.views):
            stem = experiment.name.replace("/", "-") + (f"-{place + 1}" if len(experiment.views) > 1 else "")
            lines.append(view.markdown(found, folder, stem))
        lines += [*_said("Why ours differ", group, experiment.differs)]
        lines += [provenance(experiment.name, found), ""]
    return "\n".join(lines)


def _table(judged: Sequence[Verdict], group: Group) -> list[str]:
    """The claims as a table; what we ask of ourselves has no second column."""
    lines = [*_CLAIMS, *(verdict.line() for verdict in judged)]
    if group.paper:
        return lines
    return [
        "| claim | here | figures |",
        "|---|---|---|",
        *(line.replace(" | – | ", " | ", 1) for line in lines[2:]),
    ]


def _said(head: str, group: Group, text: str) -> list[str]:
    """A paragraph, headed where it speaks of a paper."""
    if not text:
        return []
    return [f"*{head}:* {text}" if group.paper else text, ""]


def provenance(name: str, found: Results) -> str:
    """Say which command made the readings, when, on what, and how many trials each mean has."""
    about = found.about
    counts = sorted({point.trials for point in found.points})
    trials = str(counts[0]) if counts[:1] == counts[-1:] else f"{counts[0]} to {counts[-1]}"
    wanted = 1 + max(row.trial for row in found.rows)
    options = (" --quick" if about["quick"] else "") + (" --files DIR" if about["files"] else "")
    versions = ", ".join(f"{what} {which}" for what, which in about["versions"].items())
    return (
        f"`dphist bench run {name}{options} --trials {wanted}`, {about['date']}; {trials} runs a point; "
        f"{about['processor']}, {about['cores']} cores, {about['memory_gb']} GB; Python {about['python']}, {versions}."
    )


def _papers(judged: Mapping[str, Sequence[Verdict]]) -> str:
    """Say how many claims of each paper hold; its page has them one by one."""
    every = [verdict for group, some in judged.items() if GROUPS[group].paper for verdict in some]
    lines = [
        "# Do the papers' claims hold?",
        "",
        "Every table and figure of the papers was run again with mechanisms that are private, and what the papers "
        "claim was checked on our readings. Each page has its claims one by one. Generated by `dphist bench report`.",
        "",
        _COLUMNS,
        "",
        "| paper | claims | hold beside competitors as published | beside those that we ship |",
        "|---|---:|---:|---:|",
    ]
    for group, some in judged.items():
        if GROUPS[group].paper:
            lines.append(_counted(f"[{GROUPS[group].title}]({group}.md)", some))
    return "\n".join([*lines, _counted("all", every)])


def _counted(name: str, some: Sequence[Verdict]) -> str:
    held = sum(verdict.finding.holds is True for verdict in some)
    twice = [verdict.shipped.holds is True for verdict in some if verdict.shipped is not None]
    return f"| {name} | {len(some)} | {held} | {f'{sum(twice)} of {len(twice)}' if twice else '–'} |"


def _save(path: Path, text: str) -> Path:
    with atomic(path) as temporary:
        temporary.write_text(text.rstrip() + "\n", encoding="utf-8")
    return path


def read(folder: Path, names: Sequence[str], quick: bool) -> dict[str, tuple[Experiment, Results]]:
    """Load the readings of experiments that have any."""
    from dphist_bench.cases import Setting
    from dphist_bench.catalogue import load
    from dphist_bench.runner import path_of

    paths = {name: path_of(folder, name, Setting(quick=quick)) for name in names}
    return {name: (load(name), results.load(path)) for name, path in paths.items() if path.is_file()}
