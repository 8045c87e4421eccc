"""What `Release.verify` insists on: a replay with no data behind the gate gives this release and nothing else."""

from __future__ import annotations

from dataclasses import replace

from dphist.errors import VerificationError
from dphist.mechanisms.protocol import bare, made_by, with_reason
from dphist.mechanisms.spec import show
from dphist.release.bounds import check_written
from dphist.release.contents import Contents
from dphist.release.file.nothing_else import check_written_again
from dphist.release.foreign import ForeignMechanism, write_mechanism
from dphist.release.held import check_model
from dphist.release.maker import Maker
from dphist.version import __version__


def verify(release: Contents, *, choice: bool = False, exact: bool = False) -> None:
    """Replay the transcript, and hold counts, words, bounds and what was learned against it; see `Release.verify`."""
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
    check_written(release, exact=exact)
    check_written_again(release)
    if release._story is not None:
        check_model(release._story, release.domain, release.cells, bool(release.polish), release._estimate)
    if choice:
        _check_choice(release)


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
