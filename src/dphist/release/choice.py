"""Whether the rules of choosing that are installed here would choose what a release says was chosen.

A release names it, so that replays choose nothing again (`dphist.mechanisms.protocol.made_by`). That the name is the
rule's and not somebody's is another question, which only the version that made the release is sure to answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dphist.errors import VerificationError
from dphist.mechanisms.protocol import bare, made_by, with_reason
from dphist.mechanisms.spec import show
from dphist.release.description import write_mechanism
from dphist.version import __version__

if TYPE_CHECKING:
    from dphist.release.release import Release


def check_choice(release: Release) -> None:
    """Insist that the same choice is made again, for the same reason, of the public facts and the same answers."""
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
