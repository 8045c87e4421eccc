"""The durable budget: what each population may still spend, on disk before any noise is drawn.

::

    amounts.py   amounts as they are kept and shown
    lines.py     the history: hash-chained lines, and the books that follow from them
    witness.py   a note beside the ledger of how far it had come, against restoring an old one
    sqlite.py    the store: one file, many processes
    postgres.py  the store: one database, many machines
    store.py     what a store promises, so that a second one fits the same tests
    book.py      Ledger and Reservation, which users meet
"""

from dphist.private.ledger.book import Ledger, Reservation
from dphist.private.ledger.lines import Entry, Head, Line

__all__ = ["Entry", "Head", "Ledger", "Line", "Reservation"]
