"""The hidden levels behind noisy counts: likelihoods, the chain along a line, its fit, and boxes of one level."""
