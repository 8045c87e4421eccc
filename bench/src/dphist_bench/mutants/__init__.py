"""Bugs planted on purpose, one at a time, to see whether the tests notice: ``dphist bench run mutants``.

A mutant is one edit of the trusted code: a text that occurs exactly once in its file, and what a careless change would
make of it. The command works on copies of the tree, plants one mutant, runs the quick tests named beside it and takes
it out again. A mutant is *killed* if a test fails (or never ends), *stale* if its text is gone (the code has changed:
write it anew), and a *survivor* if nothing was noticed: then a test is missing. New code in ``private/``, ``sources/``,
``publishing/`` and the file writer comes with its mutants, one list a room: the text files here.
"""

from __future__ import annotations

from dphist_bench.mutants.planted import ROOT, Planted, every
from dphist_bench.mutants.runner import measure

__all__ = ["ROOT", "Planted", "every", "measure"]
