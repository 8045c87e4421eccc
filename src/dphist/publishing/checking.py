"""Whether a file is the release that a ledger paid for: the one question that a file cannot answer by itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fractions import Fraction
from os import PathLike
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from dphist.errors import LedgerError, OutputError, VerificationError
from dphist.publishing.account import paid_by
from dphist.release.reading import load
from dphist.release.release import Release

if TYPE_CHECKING:
    from dphist.private.ledger import Ledger


def save_noted(release: Release, path: str | PathLike[str], ledger: Ledger | None = None) -> None:
    """Save a release, and have the ledger that paid remember which file came of it: `verify_file` asks for that.

    Where it cannot be written after all (a disk that filled up in the meantime, a file that may not be replaced), it is
    saved among the system's temporary files, and the error says where: it is paid for, and cannot be made again.

    Args:
        release: What to save.
        path: Where; what was there is replaced.
        ledger: The ledger that paid, if one did.

    Raises:
        OutputError: if it could not be written there, with the place where it is instead.
    """
    failed = None
    try:
        release.save(path)
    except OutputError as error:
        failed = error
        try:
            path = Path(mkdtemp(prefix="dphist-")) / Path(path).name
            release.save(path)
        except (OSError, OutputError):
            raise failed from None
    if ledger is not None and release.receipt is not None:
        try:
            ledger.complete(release.receipt.payment, digest(path))
        except LedgerError as error:
            # Its own words are about spending, and whoever goes by them would pay again.
            raise LedgerError(
                f"{path} is saved and paid for, but the ledger could not note which file it is; docs/ledger.md "
                f"says how to add that note: {error}"
            ) from None
    if failed is not None:
        raise OutputError(
            f"the release is paid for and was saved as {path} instead; move it: {failed}"
        ) from None


def verify_file(
    path: str | PathLike[str], ledger: Ledger | None = None, *, choice: bool = False, exact: bool = False
) -> Release:
    """Load a release and verify it; with a ledger, also that this very file is what it paid for.

    Replaying shows that a file fits together. A file that was invented as a whole fits together, too: every count and
    its answer edited alike, a smaller ε or a larger unit claimed than the noise was drawn for. The ledger knows what
    was paid, for whom, and the digest of the file that came of it.

    Args:
        path: The release's file.
        ledger: The ledger that its receipt names.
        choice: Insist as well that the mechanism would choose the same again, as `Release.verify` does.
        exact: Insist on every bit of counts and bounds, as `Release.verify` does.

    Returns:
        The verified release.

    Raises:
        VerificationError: if it does not replay, or is not what the ledger paid for.

    Example:
        >>> import dphist, numpy as np, pathlib, tempfile
        >>> from dphist.publishing.checking import save_noted, verify_file
        >>> domain = dphist.Domain([dphist.Nominal("sex", ["F", "M"])])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "sex.parquet"
        ...     with dphist.Ledger.open(pathlib.Path(folder) / "budget.db") as ledger:
        ...         ledger.create("people", 1)
        ...         release = dphist.publish(
        ...             dphist.Histogram(domain, np.array([5, 9])), epsilon=1, ledger=ledger, dataset="people"
        ...         )
        ...         save_noted(release, path, ledger)
        ...         verify_file(path, ledger).epsilon
        Fraction(1, 1)
    """
    release = load(path)
    release.verify(choice=choice, exact=exact)
    if ledger is None:
        return release
    if release.receipt is None:
        raise VerificationError("the release says of no ledger that it paid")
    own = paid_by(ledger, release.receipt)
    # By their numbers: the hash of its last payment says which ledger these are of.
    entries = {entry.id: entry for entry in ledger.entries(own.dataset)}
    for payment, amount in _payments(release, own.id):
        # Taken out: one payment does not pay for two parts.
        entry = None if payment is None else entries.pop(payment, None)
        if entry is None:
            raise VerificationError(
                f"the ledger has no payment {payment} for dataset {own.dataset!r} that is not counted already"
            )
        paid = entry.epsilon if release.budget.pure else entry.rho
        promised = (amount, release.guarantee.delta, release.guarantee.unit.describe())
        if (paid, entry.delta, entry.unit) != promised:
            raise VerificationError("the release promises something else than the ledger paid for")
    if own.digest != digest(path):
        raise VerificationError("this is not the file that was published: its digest is not the ledger's")
    return release


def _payments(release: Release, number: int) -> Iterator[tuple[int | None, Fraction]]:
    """The payments behind a release and what each must be of: of one that was added to, every part's own."""
    from dphist.mechanisms.added import Added

    mechanism: Any = release.mechanism
    payment: int | None = number
    amount = release.budget.amount
    while isinstance(mechanism, Added):
        yield payment, amount * mechanism.share
        payment, amount, mechanism = mechanism.paid, amount * (1 - mechanism.share), mechanism.first
    yield payment, amount


def digest(path: str | PathLike[str]) -> str:
    """The SHA-256 of a file, for the ledger to remember."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
