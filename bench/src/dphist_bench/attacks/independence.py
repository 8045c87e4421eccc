"""Bets that noise hangs on what was decided before it was drawn, as it does where both drew from one seed.

A choice or a partition shows nothing of its noise but which candidate won. If the answers after it repeat its random
words, their digits go with that: a draw of Laplace noise is G or −1 − G, and the bits of G and which of the two it is
are independent coins, whose chances follow from the scale (`dphist.private.noise.laplace`). They are as independent of
everything that was decided before.

So for each of the first draws and each of their coins somebody bets, separately after every decision, that the coin
comes as often as it has after that decision so far: with h heads in n runs that is (h + 2p) ÷ (n + 2), where p is the
chance by the claimed law. The winnings multiply by that over p (or by the like for tails), which is one on average if
the claim is true, whatever was decided and however the scale depends on it. Coins of several draws are independent
too, so what was won on the like coin of all draws may be multiplied. The mean of all these stakes is one again, and
reaches 5·10⁸ with a chance of 2·10⁻⁹ at most, at any run (Ville's inequality).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dphist.model.law import NoiseLaw

FloatArray = NDArray[np.float64]

_DRAWS, _BITS = 8, 24
# Before a decision has been seen, its coins are taken to be what they claim with the weight of so many runs.
_PRIOR = 2.0
# A draw of a larger scale is not known to its last bit: noise is handed over as a float, in units of its scale.
_LARGEST = 2.0**40


class Independence:
    """What bets on every coin have won: float64[draws, coins], in logarithms."""

    def __init__(self) -> None:
        self.won: FloatArray = np.zeros((_DRAWS, _BITS + 1))
        self._seen: dict[bytes, tuple[FloatArray, FloatArray]] = {}

    def add(self, decided: bytes, noise: FloatArray, claimed: NoiseLaw) -> None:
        """Bet on the coins of the first draws after a decision, then remember how they fell."""
        if claimed.gaussian:
            return
        size = np.broadcast_to(np.asarray(claimed.size, dtype=np.float64).reshape(-1), noise.shape)[:_DRAWS]
        if not size.size or size.max() > _LARGEST:
            return
        drawn = np.rint(noise[:_DRAWS] * size).astype(np.int64)
        below = drawn < 0
        powers = np.append(2.0 ** np.arange(_BITS), 1.0)
        chance = 1.0 / (1.0 + np.exp(np.minimum(powers / size[:, None], 300.0)))
        bits = np.where(below, ~drawn, drawn)[:, None] >> np.arange(_BITS) & 1
        coins = np.column_stack([bits, below])
        nothing = np.zeros_like(self.won)
        heads, runs = self._seen.setdefault(decided, (nothing, nothing.copy()))
        many = len(drawn)
        # Of chances near one no float tells tails from none, but none of these is above a half.
        expected = (heads[:many] + _PRIOR * chance) / (runs[:many] + _PRIOR)
        self.won[:many] += np.where(coins, np.log(expected / chance), np.log1p(-expected) - np.log1p(-chance))
        heads[:many] += coins
        runs[:many] += 1.0

    @property
    def together(self) -> float:
        """The logarithm of what all have won: one half of the stake on single coins, the other on like ones."""
        return float(np.logaddexp(_mean(self.won), _mean(self.won.sum(axis=0))) - np.log(2.0))


def _mean(won: FloatArray) -> float:
    most = float(won.max())
    return most + float(np.log(np.exp(won - most).mean()))
