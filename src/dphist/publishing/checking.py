"""The file of a release: its name is claimed before anything is paid, and a ledger knows which file came of it.

Whoever pays and then cannot write has spent for nothing, since a reservation is never given back. So a file that is
there, a folder that cannot be written, a name that no file can have, and records, schema or ledger as the output are
refused first. So is an output to which somebody else is publishing at that moment: both would pay, and the second would
write over what the first paid for. The claim is a lock on a file beside the output, which the system lets go of when
its holder dies, however that happens; it knows nothing of budgets, so letting go gives nothing back.

Whether a file is the release that a ledger paid for is the one question that a file cannot answer by itself.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from os import PathLike
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from dphist.errors import LedgerError, OutputError, VerificationError
from dphist.publishing.account import local_name, paid_by
from dphist.release.atomic import check_name, check_release_name, locked, sweep
from dphist.release.reading import load
from dphist.release.release import Release

if TYPE_CHECKING:
    from dphist.private.ledger import Ledger


_CLAIM = re.compile(r"\.[0-9a-f]{24}\.claim")


@contextmanager
def claimed(
    output: Path, *, force: bool | None = False, kept: Iterable[str | Path | None] = ()
) -> Iterator[None]:
    """Hold the name of a release's file while the release is paid for, made and saved.

    ``force`` says whether a file that is there may be written over (None where a command does not ask), ``kept`` which
    files may not be, whatever is said: paths, patterns or ``file::table``.
    """
    _refuse(output, kept)
    if force is not None:
        check_release_name(output, "--output ")
    place = output.parent / f".{hashlib.sha256(output.name.casefold().encode()).hexdigest()[:24]}.claim"
    try:
        sweep(output.parent, _CLAIM)
        # Others may lock it too, so they must be able to open it; nothing is written to it.
        handle = locked(place, 0o644)
    except (BlockingIOError, FileExistsError):
        raise OutputError(
            f"somebody is publishing to {output} at this moment; nothing was spent. Wait until it is there, or choose "
            "another --output"
        ) from None
    except OSError as error:
        raise _cannot(output, error) from None
    try:
        # Looked at while nobody else can be writing it: whoever held the claim before has saved by now.
        if os.path.lexists(output) and not force:
            raise OutputError(
                f"{output} exists already, and a release that was paid for is not written over; nothing was spent. "
                "Choose another --output" + ("" if force is None else ", or say --force")
            )
        yield
    finally:
        # In this order: who opens the file in between finds that it has gone, and makes another.
        with suppress(OSError):
            place.unlink()
        os.close(handle)


def _refuse(output: Path, kept: Iterable[str | Path | None]) -> None:
    """Refuse what no release can be written to, by the name and what is there alone."""
    try:
        check_name(output)
        if not output.parent.is_dir():
            raise OutputError(f"cannot write {output}: the folder {output.parent} does not exist")
        there = output.exists()
    except OSError as error:
        raise _cannot(output, error) from None
    if there and any(output.samefile(path) for each in kept for path in _files(each)):
        raise OutputError(
            f"{output} is read or paid from, and would be lost; nothing was spent. Choose another --output"
        )


def _files(named: str | Path | None) -> Iterator[Path]:
    """The files of this machine that a source, a schema or a ledger is: none where it is an address."""
    text = local_name(str(named or "").partition("::")[0])
    # A pattern of the user's, which may begin anywhere; a path of pathlib's must begin somewhere.
    matches = glob.iglob(text, recursive=True) if glob.has_magic(text) else ()  # noqa: PTH207
    for path in (text, *matches):
        with suppress(OSError, ValueError):
            if path and Path(path).exists():
                yield Path(path)


def _cannot(output: Path, error: OSError) -> OutputError:
    return OutputError(f"cannot write {output}: {error.strerror}; choose another --output")


def save_noted(release: Release, path: str | PathLike[str], ledger: Ledger | None = None) -> None:
    """Save a release, and have the ledger that paid remember which file came of it: `verify_file` asks for that.

    Where it cannot be written after all (a disk that filled up in the meantime, a file that may not be replaced), it is
    saved among the system's temporary files, and the error says where: it is paid for, and cannot be made again.
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
