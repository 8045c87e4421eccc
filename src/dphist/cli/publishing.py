"""Files in, files out: what the commands that write do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from dphist.errors import DomainError, InputError, OutputError
from dphist.model.domain import Domain
from dphist.model.unit import Unit
from dphist.model.workload import Workload
from dphist.private.ledger import Ledger
from dphist.publishing.checking import digest
from dphist.publishing.door import DEFAULT_MECHANISM, publish
from dphist.release import Release
from dphist.release.file import atomic


def publish_file(
    source: str,
    schema: Path,
    epsilon: str,
    output: Path,
    *,
    mechanism: str | None,
    workload: str | None,
    partition_by: list[str] | None = None,
    ledger: str | None,
    dataset: str | None,
    rows: int,
    person: str | None,
    replace: bool,
    nonnegative: bool,
    integer: bool,
    say: Callable[[str], None],
) -> Release:
    """Publish to a file, and have the ledger remember which file it paid for."""
    domain = read_schema(schema)
    unit = Unit(rows=rows, replace=replace, id=person)
    if (ledger is None) != (dataset is None):
        raise InputError("--ledger and --dataset belong together: give both or neither")
    _check_writable(output)
    recipe = mechanism or DEFAULT_MECHANISM
    hint = named_workload(workload, domain)
    if ledger is None or dataset is None:
        release = publish(
            source, domain, epsilon, recipe, unit=unit, workload=hint, partition_by=partition_by
        )
        say("writing the release")
        release = release.polished(nonnegative=nonnegative, integer=integer)
        release.save(output)
        return release
    with Ledger.open(ledger) as book:
        release = publish(
            source, domain, epsilon, recipe, unit=unit, workload=hint, partition_by=partition_by,
            ledger=book, dataset=dataset,
        )  # fmt: skip
        say("writing the release")
        release = release.polished(nonnegative=nonnegative, integer=integer)
        release.save(output)
        if release.receipt is not None:
            book.complete(release.receipt[1], digest(output))
    return release


def read_schema(path: Path) -> Domain:
    """Read a schema file."""
    if not path.is_file():
        raise InputError(f"there is no schema {path}; draft one with `dphist schema new`")
    try:
        return Domain.from_toml(path)
    except DomainError as error:
        raise DomainError(f"{path}: {error}") from None


def named_workload(name: str | None, domain: Domain) -> Workload | None:
    """Give the workload of that name."""
    match name:
        case None:
            return None
        case "cells":
            return Workload.cells(domain)
        case "prefixes":
            return Workload.prefixes(domain)
        case "marginals":
            return Workload.marginals(domain)
        case _:
            return Workload.all_ranges(domain)


def write_records(release: Release, count: int | None, seed: int, output: Path | None) -> None:
    """Write synthetic records as CSV or Parquet."""
    made = release.records(count, seed=seed)
    if output is None:
        made.to_csv(sys.stdout, index=False)
        return
    with atomic(output) as temporary:
        if output.suffix == ".parquet":
            made.to_parquet(temporary, index=False)
        else:
            made.to_csv(temporary, index=False)


def write_text(text: str, output: Path | None) -> None:
    """Write text to a file that must not exist yet, or to the screen."""
    if output is None:
        sys.stdout.write(text)
        return
    if output.exists():
        raise OutputError(f"{output} exists already; choose another name")
    with atomic(output) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _check_writable(output: Path) -> None:
    """Refuse an output that cannot be written before anything is spent."""
    if output.is_dir():
        raise OutputError(f"cannot write {output}: it is a folder; name a file in it")
    if not output.parent.is_dir():
        raise OutputError(f"cannot write {output}: the folder {output.parent} does not exist")
    probe = output.parent / f".{output.name}.probe"
    try:
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutputError(f"cannot write {output}: {error.strerror}; choose another --output") from None
