"""What people may write to a ledger, and what it writes back when it refuses."""

from __future__ import annotations

import os
import shlex
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from urllib.parse import unquote

from dphist import errors
from dphist.model.exact import shown
from dphist.private.ledger.lines import Fund, Head
from dphist.private.ledger.totals import Spend, Total, most_epsilon
from dphist.private.ledger.units import described

_FREE = "answer from the releases you have, which is free"


def path_of(place: str | os.PathLike[str]) -> Path:
    """Read a path or an sqlite:/// URL."""
    text = os.fspath(place)
    scheme, separator, rest = text.partition("://")
    if separator and isinstance(place, str):
        if scheme != "sqlite" or not rest.startswith("/") or not rest.strip("/"):
            raise errors.LedgerError(
                f"a ledger cannot be opened at a {scheme}:// address like this; give a path such as "
                "'budget.db', 'sqlite:///budget.db' (here), 'sqlite:////srv/budget.db' (from the root) or "
                "'postgresql://host/database'"
            )
        text = unquote(rest[1:])
    if not text or text == ":memory:" or "\0" in text:
        raise errors.LedgerError("a ledger must be a file, so that it outlives the process; give a path")
    # Symbolic links are followed once, here, so that every process keeps log and witness beside one file.
    try:
        return Path(text).resolve()
    except (OSError, RuntimeError) as error:
        raise errors.LedgerError(f"the ledger {text} cannot be reached; give another path") from error


def empty(path: Path) -> bool:
    """Tell whether there is no ledger at all yet."""
    try:
        return not path.stat().st_size
    except FileNotFoundError:
        return True
    except OSError as error:
        raise errors.LedgerError(f"the ledger {path} cannot be reached ({error.strerror})") from error


def apart(witness: Path, path: Path) -> Path:
    """Refuse to keep the witness in a file of the ledger's own, which may not be there yet: it writes over notes."""
    own = [path.with_name(path.name + end) for end in ("", "-wal", "-shm", "-journal")]
    if witness.resolve() in own:
        raise errors.LedgerError(
            f"{witness} is no witness: it is the ledger's own file; name another place with witness=…"
        )
    return witness


def one_line(value: str, argument: str, *, blank: bool = False) -> str:
    """Accept any one-line text; the two ways to write an accented letter are one name."""
    if not isinstance(value, str):
        raise errors.InputError(f"{argument} must be text")
    text = unicodedata.normalize("NFC", value)
    if not blank and not text.strip():
        raise errors.InputError(f"{argument} must not be blank")
    if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in text):
        raise errors.InputError(f"{argument} must be one line of text, without control characters")
    return text


def now() -> str:
    """Say when, in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0).isoformat()


def exhausted(dataset: str, asked: Spend, spend: Spend, fund: Fund, place: str) -> errors.BudgetExhausted:
    """Refuse a spend: what remains is public, so it is said, with the command that allows more."""
    total, sums = fund.total, fund.sums
    start = f"dataset {dataset!r}: {asked.describe()} was asked"
    costs = spend.describe().removeprefix("epsilon ")
    price = "" if spend == asked else f", which costs {costs} for {described(fund.unit)},"
    more = (
        f"or allow more, with a reason: `dphist ledger raise {shlex.quote(place)} {shlex.quote(dataset)} …`"
    )
    if total.pure and (not sums.pure or spend.rho is not None or spend.delta):
        what = "rho" if spend.rho is not None else "delta"
        return errors.BudgetExhausted(
            f"{start} and its total is pure epsilon, {shown(total.capacity)}, which cannot pay for {what}. "
            f"Nothing was spent; publish with epsilon alone, or give the budget a delta, with a reason: "
            f"`dphist ledger raise {shlex.quote(place)} {shlex.quote(dataset)} --epsilon {shown(total.capacity)} "
            "--delta 1e-9 --purpose …`"
        )
    if spend.delta > total.discover - sums.delta:
        kept, option = total.discover - sums.delta, "discover" if total.rho is None else "delta"
        return errors.BudgetExhausted(
            f"{start}{price} and delta {shown(kept)} remains for discovered names. Nothing was spent; ask for a "
            f"smaller delta, {more.replace('…`', f'--{option} … --purpose …`')}"
        )
    if total.pure:
        rest, whole = shown(total.capacity - sums.price), shown(total.capacity)
        most = f"{shown((total.capacity - sums.price) * asked.amount / spend.amount)}"
        way = f"ask for at most {most}" if total.capacity > sums.price else _FREE
        return errors.BudgetExhausted(
            f"{start}{price} and {rest} of {whole} remains. Nothing was spent; {way}, {more}"
        )
    left, rho = most_epsilon(total, sums), max(total.capacity - sums.price, Fraction(0))
    rest = (
        f"at most rho {float(rho):.6g} or a pure epsilon of {float(left):.6g} more fits in {total.describe()}"
    )
    way = "ask for less" if left > 0 or rho > 0 else _FREE
    return errors.BudgetExhausted(f"{start}{price} and {rest}. Nothing was spent; {way}, {more}")


def foreign(dataset: str, budget: str, spend: str) -> errors.UnitMismatch:
    """Refuse a spend whose promise says nothing about those whom the budget protects."""
    return errors.UnitMismatch(
        f"dataset {dataset!r}: unit: this budget protects {budget}; you publish for {spend}. These cannot be added up: "
        "use another budget. Nothing was spent"
    )


# Letters of other alphabets that nobody tells from a Latin one by looking.
_ALIKE = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаеорсухіјѕԁԛԝһΑΒΕΖΗΙΚΜΝΟΡΤΥΧο",
    "ABESIJKMHOPCTYXaeopcyxijsdqwhABEZHIKMNOPTYXo",
)


def read_alike(dataset: str, names: Iterable[str]) -> str | None:
    """Find another name that a person would take for this one: by case, spaces, widths or letters that are not seen.

    Two budgets for the same people are twice what anybody meant to allow.
    """
    looks = _looks(dataset)
    return next((name for name in names if name != dataset and _looks(name) == looks), None)


def _looks(name: str) -> str:
    text = unicodedata.normalize("NFKC", name).translate(_ALIKE).casefold()
    seen = (c for c in text if unicodedata.category(c) != "Cf" and not "\ufe00" <= c <= "\ufe0f")
    return " ".join("".join(seen).split())


def confusing(dataset: str, other: str, place: str) -> errors.InputError:
    """Refuse a second budget whose name reads like the first one's."""
    return errors.InputError(
        f"dataset {dataset!a} reads like {other!a}, which has a budget in {place}: spend from that one if these are "
        "the same people, or choose a name that people can tell apart"
    )


def created_twice(dataset: str, place: str) -> errors.InputError:
    """Refuse a second total."""
    return errors.InputError(
        f"dataset {dataset!r} already has a budget in {place}; spend from it, or raise it, with a reason: "
        f"`dphist ledger raise {shlex.quote(place)} {shlex.quote(dataset)} … --purpose …`"
    )


def lowered(dataset: str, total: Total) -> errors.InputError:
    """Refuse a total that allows less in something, or no more in anything."""
    return errors.InputError(
        f"total: the new total of {dataset!r} must be larger than {total.describe()}. It cannot be lowered; a budget "
        "in rho stays in rho, and one in epsilon may get a delta"
    )


def unknown(dataset: str, names: list[str], place: str) -> errors.UnknownDataset:
    """Refuse a name, and offer those near it."""
    near = get_close_matches(dataset, names, n=3, cutoff=0.5) or names[:5]
    known = f"did you mean {' or '.join(map(repr, near))}?" if near else "it has no budgets yet."
    return errors.UnknownDataset(
        f"the ledger {place} has no budget for dataset {dataset!r}; {known} A new population gets its "
        f"budget with `dphist ledger create {shlex.quote(place)} {shlex.quote(dataset)} TOTAL`"
    )


def older(place: object, witness: Path | None) -> errors.LedgerError:
    """Refuse a ledger that does not hold a line it once held."""
    return errors.LedgerError(
        f"the ledger {place} is older than its witness{f' {witness}' if witness else ''}, or another one: spends "
        "are missing. Put the newest ledger back. If it is lost, move the witness away and reserve what was spent "
        "since, as docs/ledger.md describes"
    )


def not_held(place: object, head: Head) -> errors.LedgerError:
    """Refuse a ledger that does not hold a line which somebody has noted."""
    return errors.LedgerError(
        f"the ledger {place} has no line {head.number}:{head.hash}. Compare it with your note, character by character. "
        "If they are equal, this ledger is older than the note, another one, or rewritten: stop publishing, and put "
        "the newest ledger back as docs/ledger.md describes"
    )
