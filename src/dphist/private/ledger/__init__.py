"""The durable budget: what each population may still spend, on disk before any noise is drawn.

::

    totals.py    amounts, totals in ε, (ε, δ) and ρ, and the rule by which a spend fits one
    units.py     for whom a budget counts, and what a spend for somebody else costs in it
    lines.py     the history: hash-chained lines, and the books that follow from them
    journal.py   lines as they are stored, read, added and held to what others have noted, a witness above all
    store.py     what a store promises, and what all do alike: turns, transactions, forks
    sqlite.py    the store: one file, many processes
    postgres.py  the store: one database, many machines
    reading.py   what a ledger says of itself, in each way of counting
    wording.py   what people may write, and what is said to them
    book.py      Ledger, which users meet
"""

from dphist.private.ledger.book import Ledger, Reservation
from dphist.private.ledger.lines import Entry, Head, Line
from dphist.private.ledger.reading import Account
from dphist.private.ledger.units import described

__all__ = ["Account", "Entry", "Head", "Ledger", "Line", "Reservation", "described"]
