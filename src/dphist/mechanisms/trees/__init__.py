"""Growing measured trees: the one grower, how levels share a budget, and the plans for boxes."""
