"""Public arithmetic on released numbers: what was measured, what it says of the counts, and how far that may be off.

Nothing here spends or sees a count, so mechanisms and releases import it freely; it imports `model` and `kernels`. The
files here are what all share: what a mechanism hands over (`estimate`), what was measured as nested totals
(`measured`), errors and intervals that are theorems, counts read by what lies around them (`neighbours`). Rooms:
`predictive/`, calibrated intervals; `tables/`, tables of few attributes.
"""
