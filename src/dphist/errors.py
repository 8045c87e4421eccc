"""Every error dphist raises on purpose.

::

    DphistError
    ├── InputError                 wrong use; exit code 2
    │   ├── ArgumentError          arguments that a function does not have; a TypeError too
    │   ├── DomainError            a schema or domain that makes no sense
    │   ├── SourceError            records that cannot be read as declared
    │   ├── DroppedRows            too many rows would not count: a stop before paying, for the custodian's eyes
    │   ├── MechanismError         unknown mechanism or option, or one that cannot run here
    │   ├── QueryError             a question the release cannot answer
    │   ├── EpsilonError           ε that is not a positive finite number
    │   ├── TooLargeError          a cube that does not fit in memory
    │   └── ReleaseError           a file that is not a readable release
    ├── BudgetError                exit code 3
    │   ├── BudgetExhausted        the ledger refuses: nothing was spent
    │   ├── UnitMismatch           the budget protects somebody whom the release promises nothing
    │   └── UnknownDataset         the ledger has no such budget
    ├── LedgerError                the ledger cannot be opened, read or trusted
    ├── EngineError                an engine failed after the gate was opened: no release, the budget stays spent
    ├── OutputError                the release cannot be written where asked
    ├── RightUsed                  a mechanism asked twice with one right
    ├── NotPrivate                 a mechanism or entropy that a release must refuse
    └── VerificationError          replay does not give the published release

Messages name the argument and the way out. They are outputs too: they depend on public facts only and never
quote a record, a count or a total.
"""

from __future__ import annotations


class DphistError(Exception):
    """The root of every error dphist raises on purpose."""

    exit_code = 1


class CustodyWarning(UserWarning):
    """Something a custodian should think about before publishing; said once."""


class InputError(DphistError):
    """Wrong use or bad input."""

    exit_code = 2


class ArgumentError(InputError, TypeError):
    """Arguments that a function does not have, or too few of them."""


class DomainError(InputError):
    """A schema or domain that makes no sense."""


class SourceError(InputError):
    """Records that cannot be read as declared."""


class DroppedRows(InputError):
    """Too many rows would not count: nothing was spent. It depends on the records, so only their holder may see it."""


class MechanismError(InputError):
    """An unknown mechanism or option, or one that cannot run on this domain."""


class QueryError(InputError):
    """A question the release cannot answer."""


class EpsilonError(InputError):
    """An ε or share that is not a positive finite number."""


class TooLargeError(InputError):
    """A cube that does not fit in memory."""


class ReleaseError(InputError):
    """A file that is not a readable release."""


class BudgetError(DphistError):
    """The budget refuses."""

    exit_code = 3


class BudgetExhausted(BudgetError):
    """The ledger refuses because the budget would be exceeded; nothing was spent."""


class UnitMismatch(BudgetError):
    """The ledger refuses because the spend protects another unit and cannot be converted; nothing was spent."""


class UnknownDataset(BudgetError):
    """The ledger has no budget under this name."""


class LedgerError(DphistError):
    """The ledger cannot be opened, read or trusted."""


class EngineError(DphistError):
    """An engine failed after the gate was opened: there is no release, and the budget stays spent."""


class OutputError(DphistError):
    """The release cannot be written where asked."""


class RightUsed(DphistError):
    """A mechanism asked twice with one right."""


class NotPrivate(DphistError):
    """A mechanism, or entropy, that a release must refuse."""


class VerificationError(DphistError):
    """Replaying the mechanism does not give the published release."""
