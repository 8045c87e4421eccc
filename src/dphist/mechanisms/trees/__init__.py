"""Growing measured trees: the one grower, how levels share a budget, and the plans for boxes.

For mechanisms that measure totals (`adaptivetree`, `tree`, `spatialtrees`, `grids`) and for forecasts.
"""
