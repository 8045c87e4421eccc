"""The papers' experiments, described: one module a paper, an `EXPERIMENTS` tuple in each."""
