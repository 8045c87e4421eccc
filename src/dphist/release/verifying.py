"""What `Release.verify` insists on: a replay with no data behind the gate gives this release and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dphist.errors import VerificationError
from dphist.mechanisms.protocol import bare, made_by, with_reason
from dphist.mechanisms.spec import show
from dphist.release.contents import Contents
from dphist.release.file.nothing_else import check_written_again
from dphist.release.guarantee import ForeignMechanism, Maker, write_mechanism
from dphist.release.held import check_model
from dphist.version import __version__

_ROWS = 1 << 20
# Arithmetic differs in the last digits from one platform to the next; a forger gains nothing there.
_SLACK = 1e-9


def verify(release: Contents, *, choice: bool = False, exact: bool = False) -> None:
    """Replay the transcript, and hold counts, words, bounds and what was learned against it; see `Release.verify`.

    What another version wrote it alone is sure to find again: its name is said where this one does not.
    """
    try:
        _verify(release, choice=choice, exact=exact)
    except VerificationError as error:
        written = release._written
        software = "" if written is None else written.told.get(b"software", b"").decode(errors="replace")
        if software in ("", f"dphist {__version__}") or not software.isprintable():
            raise
        raise VerificationError(
            f"{error}; the file names {software[:60]}: verify it with that version"
        ) from None


def _verify(release: Contents, *, choice: bool, exact: bool) -> None:
    if release.transcript.spent() > release._own_budget.amount:
        raise VerificationError("the transcript spends more than the guarantee says")
    mechanism = release.mechanism
    if isinstance(mechanism, ForeignMechanism):
        raise mechanism.refused
    _check_sums(release, exact=exact)
    cells = release.cells.replayed(release)
    for step in release.polish:
        cells = cells.polish(step, release)
    if not release.cells.same(cells, exact=exact):
        raise VerificationError("replaying the transcript gives other counts than the published ones")
    # What is said about the estimate is published with it, so it must follow from paid answers as well.
    for said in {release.note, getattr(release.mechanism, "why", "")} - {""}:
        if said != release._estimate.note:
            raise VerificationError("the release says of itself what its replay does not")
    if write_mechanism(mechanism) != release._described or Maker.of(mechanism) != release.maker:
        raise VerificationError(
            f"what the release says of its mechanism is not what dphist {__version__} says of it"
        )
    # Bounds of all cells first: they need every split, and what was learned some of them.
    _check_bounds(release, exact=exact)
    check_written_again(release)
    if release._story is not None:
        check_model(release._story, release.domain, release.cells, bool(release.polish), release._estimate)
    if choice:
        _check_choice(release)


def _check_bounds(release: Contents, *, exact: bool) -> None:
    """Insist that the bounds in the file which the release comes from are the release's own (``exact``: bit by bit)."""
    written = release._written
    if written is None:
        return
    size, slack = int(release.cells.numbers.size), 0.0 if exact else _SLACK
    for begin in range(0, size, _ROWS):
        end = min(begin + _ROWS, size)
        wanted = release.cells.bounds(release, begin, end, written.confidence)
        for one, other in zip(written.rows(begin, end), wanted, strict=True):
            if not np.allclose(one, other, rtol=slack, atol=slack, equal_nan=True):
                raise VerificationError("a bound in the file is not what this release's interval is")


def _check_sums(release: Contents, *, exact: bool = False) -> None:
    """Insist that the sums belong to this release, and that all of it together costs no more than it promises."""
    seen = set()
    for sums in release.sums:
        part = sums.release
        key = (sums.measure.name, sums.quantity.squared, sums.quantity.clipped)
        fits = part.domain == release.domain and not part.sums and part.polish == () and key not in seen
        seen.add(key)
        if not fits or part.guarantee.unit != sums.quantity.in_steps(release.guarantee.unit):
            raise VerificationError("the sums do not belong to this release")
        verify(part, exact=exact)


def _check_choice(release: Contents) -> None:
    """Insist that the same choice is made again, for the same reason, of the public facts and the same answers.

    A release names what was chosen, so that replays choose nothing again (`dphist.mechanisms.protocol.made_by`). That
    the name is the rule's and not somebody's is another question, which only the version that made the release is sure
    to answer.
    """
    if show(release.mechanism, filled=True) == show(release.mechanism):
        # Nobody chose.
        return
    recipe = bare(release.mechanism)
    again = replace(release, mechanism=recipe)._replay()
    chosen = with_reason(made_by(recipe, again), again.note)
    if write_mechanism(chosen) != write_mechanism(release.mechanism):
        raise VerificationError(
            f"dphist {__version__} would choose otherwise than this release says, or for another reason: another "
            "version made it, or somebody chose by hand"
        )
