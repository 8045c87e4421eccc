"""The one list of mechanisms: name, family, what it is for, standing, whose idea it is, and where it lives.

A new mechanism is one file and one line here. Homes are ``module:attribute``, so that listing imports nothing heavy; an
attribute is a frozen dataclass, or a function that builds one (a preset).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from importlib import import_module
from inspect import signature
from pkgutil import walk_packages
from types import MappingProxyType
from typing import Any, Literal, cast

from dphist.errors import MechanismError
from dphist.mechanisms import papers

Status = Literal["default", "recommended", "paper", "reference"]

FAMILIES: dict[str, str] = {
    "ours": "Chosen and inferred by evidence in what was measured",
    "baselines": "Baselines, very large domains, parts",
    "buckets": "Buckets of neighbours",
    "spatial": "Boxes and grids for two and more attributes",
    "trees": "Trees of totals",
    "blocks": "Order, smooth, measure",
    "compression": "Frequencies and partitions, sorted counts, rounds",
    "wavelets": "Wavelets",
}
OWN = "dphist's own"
STATUSES: dict[Status, str] = {
    "default": "what publish takes when nothing is named",
    "recommended": "the few that we would reach for",
    "paper": "a scheme of the literature, or a part that schemes are made of",
    "reference": "for comparison only; refused in a release",
}
MOST = 520
"""Bytes for every cell that no mechanism exceeds that does not say so: what is reckoned with where it is not known."""


@dataclass(frozen=True)
class Entry:
    """What the registry knows of one name. Calling it builds the mechanism: ``entry(option=value)``.

    Args:
        name: What ``--mechanism`` and `publish` accept.
        family: One of the families that `dphist mechanisms --all` lists.
        status: ``"default"``, ``"recommended"``, ``"paper"`` (from the literature) or ``"reference"`` (comparison only;
            a release refuses it).
        summary: What it is for, in one line.
        home: Where it lives, as ``module:attribute`` inside `dphist.mechanisms`.
        preset_of: The mechanism whose options this name sets, if it is a preset.
        alias_of: Another name for exactly the same value, if there is one.
        paper: Where the idea was published; None for dphist's own.
        memory: Bytes for every cell that publishing and saving take at most, all together; a preset takes what the
            mechanism does that it is a preset of.

    Example:
        >>> entry = list_mechanisms()["boost"]
        >>> entry.family, entry.status, entry.preset_of, entry.authors
        ('trees', 'paper', 'tree', 'Hay et al. 2010')
        >>> entry()
        Tree(fanout=2, budgets='uniform', root=True, nonnegative=True, workload=None)
    """

    name: str
    family: str
    status: Status
    summary: str
    home: str
    preset_of: str | None = None
    alias_of: str | None = None
    paper: papers.Paper | None = None
    memory: int = MOST

    @property
    def authors(self) -> str:
        """Whose idea it is, in short."""
        return OWN if self.paper is None else self.paper.short

    @cached_property
    def build(self) -> Any:
        """The class, or the function that a preset is; imported when it is first asked for."""
        return at(self.home)

    @cached_property
    def cls(self) -> type:
        """The class of what the name builds: for a preset, that of the mechanism it is a preset of."""
        return cast(type, self.build if self.preset_of is None else MECHANISMS[self.preset_of].build)

    @property
    def options(self) -> dict[str, Any]:
        """Its options and their defaults; `dataclasses.MISSING` where one must be given."""
        if self.preset_of is None:
            return {
                option.name: option.default if option.default_factory is MISSING else option.default_factory()
                for option in fields(self.build)
                if option.init and option.compare
            }
        return {name: each.default for name, each in signature(self.build).parameters.items()}

    def __call__(self, **options: Any) -> Any:
        """Build the mechanism, its options read as everywhere else."""
        return build(self.name, options)


def at(home: str) -> Any:
    """Import what lives at ``module:attribute`` of `dphist.mechanisms`."""
    module, attribute = home.split(":")
    return getattr(import_module(f"dphist.mechanisms.{module}"), attribute)


def load_rooms(*rooms: str) -> None:
    """Import every module of some rooms, so that none is missing, broken or too large when its time has come."""
    for room in rooms:
        for found in walk_packages(import_module(f"dphist.{room}").__path__, f"dphist.{room}."):
            import_module(found.name)


def _table(*entries: Entry) -> dict[str, Entry]:
    return {entry.name: entry for entry in entries}


# What Kellaris, Papadopoulos and Papadias compose of blocks.
_SCHEMES = (
    ("s1", "smooth by absolute deviations"),
    ("s-approx", "smooth by absolute deviations, power-of-two buckets"),
    ("s2", "smooth by squared deviations of a noisy copy"),
    ("o+s1", "order, then smooth by absolute deviations"),
    ("o+s-approx", "order, then smooth into power-of-two buckets"),
    ("o+s2", "order, then smooth by squared deviations"),
    ("s1+mm", "smooth, then a strategy for all ranges"),
    ("s-approx+mm", "power-of-two buckets, then a strategy for all ranges"),
    ("s2+mm", "smooth by squares, then a strategy for all ranges"),
    ("s1+pmm", "smooth, then a strategy for prefixes"),
    ("s-approx+pmm", "power-of-two buckets, then a strategy for prefixes"),
    ("s2+pmm", "smooth by squares, then a strategy for prefixes"),
    ("s1+h", "smooth whole subtrees, then a tree that stops there"),
    ("s2+h", "smooth whole subtrees by squares, then a tree that stops there"),
)
MECHANISMS: dict[str, Entry] = _table(
    Entry("posterior", "ours", "recommended", "single counts: each is inferred from its neighbours",
          "posterior:Posterior"),
    Entry("adaptivetree", "ours", "recommended", "ranges of all sizes: a tree that is measured where it is full",
          "adaptivetree:AdaptiveTree", memory=240),
    Entry("marginals", "ours", "recommended", "tables of a few attributes: exactly these are measured",
          "marginals:Marginals"),
    Entry("residuals", "ours", "recommended", "tables of few attributes out of ten to a hundred columns",
          "residuals:Residuals", paper=papers.RESIDUALS),
    Entry("mixture", "ours", "recommended",
          "records of very many columns: a model fitted to few tables; synthetic records", "mixture:Mixture"),
    Entry("added", "ours", "paper", "tables that were added to a release later, fitted together with it",
          "added:Added"),
    Entry("auto", "ours", "default", "anything: chooses from what will be asked, and says why", "auto:Auto"),
    Entry("prefixsums", "ours", "recommended", "cumulative curves under ρ: every prefix with nearly the same error",
          "prefixsums:PrefixSums", paper=papers.PREFIXES),
    Entry("laplace", "baselines", "recommended", "no bias and the plainest intervals: noise on every count",
          "baseline:Laplace", paper=papers.DWORK, memory=100),
    Entry("gaussian", "baselines", "recommended", "no bias under ρ, or ε with δ: Gaussian noise on every count",
          "baseline:Gaussian", paper=papers.GAUSSIAN, memory=100),
    Entry("uniform", "baselines", "paper", "the total alone, spread evenly: the least anyone should beat",
          "baseline:Uniform", paper=papers.DWORK, memory=100),
    Entry("sparselaplace", "baselines", "recommended", "schemas too large to write out: the counts above a threshold",
          "sparselaplace:SparseLaplace", paper=papers.SPARSE),
    Entry("heap", "baselines", "paper", "one value of an attribute by itself, and the others beside it",
          "bypart:Heap"),
    Entry("bypart", "baselines", "paper", "each value of public attributes by itself, all with the whole budget",
          "bypart:ByPart"),
    Entry("noisefirst", "buckets", "paper", "histograms with flat stretches, when single counts are asked for",
          "noisefirst:NoiseFirst", paper=papers.BUCKETS),
    Entry("structurefirst", "buckets", "paper", "histograms with flat stretches, when ranges are asked for",
          "structurefirst:StructureFirst", paper=papers.BUCKETS),
    Entry("fpa", "compression", "paper", "smooth counts: a fixed number of low frequencies",
          "fourier:FPA", paper=papers.FREQUENCIES, memory=900),
    Entry("efpa", "compression", "paper", "smooth counts: as many low frequencies as pay for their noise",
          "fourier:EFPA", paper=papers.LOSSY, memory=900),
    Entry("spa", "compression", "reference", "sampling perturbation of frequencies, as Rastogi and Nath have it",
          "fourier:SPA", paper=papers.FREQUENCIES),
    Entry("phpartition", "compression", "paper", "counts of few distinct levels: runs cut in two again and again",
          "hpartition:PHPartition", paper=papers.LOSSY),
    Entry("isotonic", "compression", "paper", "counts that never fall, such as sorted ones",
          "isotonic:Isotonic", paper=papers.CONSISTENCY, memory=140),
    Entry("mwem", "compression", "paper", "few records for many questions: even counts, bent to the worst answer",
          "mwem:MWEM", paper=papers.MWEM),
    Entry("privelet", "wavelets", "paper", "ranges over ordered and nominal attributes with known, even errors",
          "privelet:Privelet", paper=papers.PRIVELET, memory=200),
    Entry("dpcube", "spatial", "paper", "cubes with even regions: boxes found in noisy counts, counted afresh",
          "dpcube:DPCube", paper=papers.DPCUBE),
    Entry("kdhybrid", "spatial", "paper", "points in a plane: cuts at noisy medians, then halves",
          "spatialtrees:KDHybrid", paper=papers.SPATIAL),
    Entry("hierarchicalkd", "spatial", "paper", "points in a plane: cuts at noisy medians all the way",
          "spatialtrees:HierarchicalKD", paper=papers.MATCHING),
    Entry("quadtree", "spatial", "paper", "points in a plane: halves all the way, no budget for medians",
          "spatialtrees:QuadTree", paper=papers.SPATIAL),
    Entry("uniformgrid", "spatial", "paper", "points in a plane: one grid, as fine as the budget bears",
          "grids:UniformGrid", paper=papers.GRIDS),
    Entry("adaptivegrid", "spatial", "paper", "points in a plane: a coarse grid, finer where records are",
          "grids:AdaptiveGrid", paper=papers.GRIDS),
    Entry("blocks", "blocks", "paper", "your own composition of ordering, smoothing and measuring",
          "blocks:Blocks", paper=papers.BLOCKS),
    Entry("matrix", "blocks", "paper", "a known workload: the blocks and shares that are best for it",
          "matrix:Matrix", paper=papers.STRATEGIES),
    Entry("tree", "trees", "paper", "ranges: totals of nested blocks, made consistent",
          "tree:Tree", paper=papers.CONSISTENCY, memory=380),
    Entry("boost", "trees", "paper", "a binary tree with equal shares, made consistent",
          "presets:boost", "tree", paper=papers.CONSISTENCY),
    Entry("hb", "trees", "paper", "a fan-out chosen by the number of counts",
          "presets:hb", "tree", paper=papers.HIERARCHIES),
    Entry("greedyh", "trees", "paper", "the second half of DAWA: binary levels weighted for the workload",
          "presets:greedyh", "tree", paper=papers.DAWA),
    Entry("dawa", "blocks", "paper", "power-of-two groups, then a strategy for the workload",
          "presets:dawa", "blocks", paper=papers.DAWA),
    Entry("ahp", "blocks", "paper", "order, group by squared deviations, measure groups anew",
          "presets:ahp", "blocks", paper=papers.AHP),
    Entry("h", "trees", "paper", "the paper's name for the tree as it stands",
          "presets:h", "tree", alias_of="tree", paper=papers.CONSISTENCY),
    *(Entry(name, "blocks", "paper", summary, f"presets:{name.replace('+', '_').replace('-', '_')}", "blocks",
            paper=papers.BLOCKS) for name, summary in _SCHEMES),
)  # fmt: skip

# Values that mechanisms are built of, but that are no mechanisms themselves.
INGREDIENTS: dict[str, str] = {
    "course": "mixture:Course",
    "look": "choosing.pilot:PilotQuery",
    "smooth": "smooth:Smooth",
    "sort": "blocks:Sort",
}

# Where everything lives that can be written as ``name(option=value)``.
BUILDABLE: dict[str, str] = {**INGREDIENTS, **{name: entry.home for name, entry in MECHANISMS.items()}}

# Classes that no name stands for, beside those of the registry.
_OTHERS = ("smooth:Smooth", "blocks:Sort")

# Every class a user may build, by its own name.
CLASSES: dict[str, str] = {
    home.split(":")[1]: home
    for home in (*(entry.home for entry in MECHANISMS.values() if entry.preset_of is None), *_OTHERS)
}


def home_of(value: object) -> str:
    """Where the class of a mechanism or an ingredient lives; nothing is imported."""
    return f"{type(value).__module__.removeprefix('dphist.mechanisms.')}:{type(value).__name__}"


def memory_of(mechanism: object) -> int:
    """Bytes for every cell that publishing by a mechanism takes."""
    home = home_of(mechanism)
    return next((entry.memory for entry in MECHANISMS.values() if entry.home == home), MOST)


def build(name: str, options: dict[str, Any]) -> Any:
    """Build what a name stands for; its class reads the options (`dphist.mechanisms.options`)."""
    key = name.strip().lower()
    if key not in BUILDABLE:
        import difflib

        near = difflib.get_close_matches(key, BUILDABLE, n=3)
        hint = f"did you mean {', '.join(near)}?" if near else "`dphist mechanisms` lists them"
        raise MechanismError(f"there is no mechanism {name.strip()!r}; {hint}")
    made = at(BUILDABLE[key])
    known = signature(made).parameters
    for option in options:
        if option not in known:
            listed = ", ".join(known) or "none"
            raise MechanismError(f"{key!r} has no option {option!r}; it has: {listed}")
    try:
        return made(**options)
    except (TypeError, ValueError) as error:
        raise MechanismError(f"{key!r} refuses its options: {error}") from None


def entry_of(mechanism: object) -> Entry | None:
    """The entry that a mechanism was built by: a preset that is equal to it, else its class; None for foreign ones."""
    # Presets of blocks have options of their grouping alone.
    group = getattr(mechanism, "group", None)
    home = home_of(mechanism)
    for entry in MECHANISMS.values():
        if entry.preset_of is not None and home == MECHANISMS[entry.preset_of].home:
            given = {name: getattr(group, name, default) for name, default in entry.options.items()}
            if entry(**given) == mechanism:
                return entry
    named = (entry for entry in MECHANISMS.values() if entry.preset_of is None)
    return next((entry for entry in named if home == entry.home), None)


def reference_of(mechanism: object) -> str:
    """Who thought of a mechanism, and of what it chose."""
    entry = entry_of(mechanism)
    if entry is None:
        return ""
    own = (
        f"{OWN}; the idea and the proof are in its documentation."
        if entry.paper is None
        else entry.paper.cited
    )
    chosen = entry_of(getattr(mechanism, "chosen", None) or getattr(mechanism, "inner", None))
    if chosen is None or chosen.paper is None or chosen.paper == entry.paper:
        return own
    return f"{own} It runs {chosen.name}: {chosen.paper.cited}"


def list_mechanisms() -> Mapping[str, Entry]:
    """Give everything that ``--mechanism`` accepts: the default first, then the recommended, then the rest by family.

    Returns:
        A read-only mapping from name to `Entry` (``cls``, ``family``, ``status``, ``summary``, ``options`` …). Nothing
        is imported until an entry's class is asked for.

    Example:
        >>> names = list_mechanisms()
        >>> next(iter(names)), names["auto"].status
        ('auto', 'default')
        >>> names["noisefirst"].cls.__name__
        'NoiseFirst'
    """
    families, statuses = list(FAMILIES), list(STATUSES)

    def rank(entry: Entry) -> tuple[int, int, str]:
        standing = statuses.index(entry.status)
        return (standing, 0, entry.name) if standing < 2 else (2, families.index(entry.family), entry.name)

    return MappingProxyType({entry.name: entry for entry in sorted(MECHANISMS.values(), key=rank)})
