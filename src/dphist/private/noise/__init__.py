"""The one home of randomness: exact samplers on the operating system's entropy.

`Noise` is what the gate draws from. On uniform bits every sampler here has exactly the probabilities it
states, not floating-point approximations of them: a probability that is a little off is a privacy loss that
no ε counts. The bits come from AES-256 under a key of the operating system's; that they cannot be told from
uniform ones is the one assumption.

    keystream   random bytes, never handed out twice
    certified   integer enclosures of exp(−x); exact coins on top of them; bounds of tails
    laplace     discrete Laplace noise as independent digits, and what makes it coarser
    gaussian    discrete Gaussian noise by blocks
    selection   the exponential mechanism
    hits        coins for more cells than can be visited

Time: the samplers' time depends on the public scale and on the random bits. Laplace noise never looks at the
counts except to be added to them. Selection reads the scores; when two candidates cannot be told apart within
the fast path's error it takes longer, so its time is data-dependent (the privacy claim covers outputs).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dphist.errors import InputError
from dphist.kernels.compile import THREADS, together
from dphist.private.noise import gaussian as _gaussian
from dphist.private.noise import hits as _hits
from dphist.private.noise import laplace as _laplace
from dphist.private.noise import selection as _selection
from dphist.private.noise.keystream import Keystream

__all__ = ["Keystream", "Noise", "check_scale", "check_variance"]

Int64s = npt.NDArray[np.int64]

_BLOCK = 1 << 15
# Tables take about a millisecond to build and save some nanoseconds a draw. The size asked for decides, not
# what was asked before, so that a test seed gives the same noise whatever ran earlier in the process.
_TABLES_PAY = 1 << 16
# A second thread takes longer to start than this many draws.
_THREADS_PAY = 1 << 22
# Noise stays a thousand scales away from the ends of int64.
_LARGEST_SCALE = 1 << 53


_Law = _laplace.BinaryLaplace | _laplace.TabledLaplace | _gaussian.BlockGaussian


class Noise:
    """Draws exact noise from a keystream; safe to share between threads and across forks."""

    def __init__(self, keystream: Keystream) -> None:
        self.keystream = keystream

    @staticmethod
    def system() -> Noise:
        """Give the process-wide noise, under a key that the operating system gives out now."""
        _SYSTEM.keystream.renew()
        return _SYSTEM

    def laplace(self, scale: Fraction, shape: int | tuple[int, ...]) -> Int64s:
        """Draw integers with probability ∝ exp(−|k|/scale), exactly."""
        out = np.zeros(shape, dtype=np.int64)
        return self.add_laplace(out, scale, out)

    def add_laplace(self, values: Int64s, scale: Fraction, out: Int64s | None = None) -> Int64s:
        """Add discrete Laplace noise to integers in one pass; ``out`` may be ``values`` itself.

        Probabilities are ∝ exp(−|k|/scale) for any positive rational scale below 2^53, tiny ones included.
        Needs a few blocks of 32,768 draws beside the arrays, whatever their size. Sums wrap modulo 2^64,
        which is a function of the noisy sum and so costs no privacy.
        """
        numerator, denominator = check_scale(scale)
        find = _laplace.tabled if values.size >= _TABLES_PAY else _laplace.binary
        return self._add(find(numerator, denominator), values, out)

    def blur(self, values: Int64s, fine: Fraction, coarse: Fraction) -> Int64s:
        """Add what makes discrete Laplace noise of the scale ``fine`` such noise of the scale ``coarse``, exactly.

        The rest that is added does not depend on the noise that is there (`dphist.private.noise.laplace`).
        """
        scales = check_scale(fine), check_scale(coarse)
        if fine >= coarse:
            raise InputError("coarse: noise is made coarser only; give a larger scale")
        stays = _laplace.stay(*scales).toss(self.keystream, values.size).reshape(values.shape)
        rest = self.laplace(coarse, values.shape)
        rest[stays] = 0
        return values + rest

    def add_gaussian(self, values: Int64s, variance: Fraction, out: Int64s | None = None) -> Int64s:
        """Add discrete Gaussian noise to integers in one pass; ``out`` may be ``values`` itself.

        Probabilities are ∝ exp(−k²/2·variance) for any positive rational variance below 2^106, tiny ones included;
        tails are not cut off. (The law's variance is a little less than the parameter of that name.)
        """
        numerator, denominator = check_variance(variance)
        fineness = _gaussian.FINE if values.size >= _TABLES_PAY else _gaussian.COARSE
        return self._add(_gaussian.blocks(numerator, denominator, fineness), values, out)

    def _add(self, law: _Law, values: Int64s, out: Int64s | None) -> Int64s:
        if out is None:
            out = np.empty(values.shape, dtype=np.int64)
        if values.dtype != np.int64 or out.dtype != np.int64 or not out.flags.c_contiguous:
            raise InputError("values, out: must be 64-bit integers, and out contiguous")
        if values.shape != out.shape:
            raise InputError("out: must have the shape of values")
        source, target = np.ascontiguousarray(values).reshape(-1), out.reshape(-1)

        def work(begin: int, end: int) -> None:
            for start in range(begin, end, _BLOCK):
                stop = min(start + _BLOCK, end)
                law.add(self.keystream, source[start:stop], target[start:stop])

        # Every thread has a key of its own. A test seed must mean the same noise however threads take turns.
        alone = self.keystream.test or len(source) < _THREADS_PAY
        together(work, len(source), 1 if alone else THREADS)
        return out

    def hits(self, cells: int, scale: Fraction, threshold: int) -> Int64s:
        """Say, ascending, in which of ``cells`` cells noise of this scale would reach a threshold of at least one."""
        check_scale(scale)
        return _hits.hits(self.keystream, cells, scale, threshold)

    def select(
        self,
        scores: Int64s,
        starts: Int64s,
        rate: Fraction,
        divisors: Int64s | None = None,
    ) -> Int64s:
        """Choose a candidate in every part: i with probability ∝ exp(rate·score_i), exactly.

        Part p holds candidates ``starts[p] … starts[p + 1] − 1``; the answer counts from the part's start.
        ``divisors`` (positive integers, one a part) divide the rate. Scores may span all of int64.
        """
        scores = np.ascontiguousarray(scores, dtype=np.int64)
        starts = np.ascontiguousarray(starts, dtype=np.int64)
        count = len(starts) - 1
        if count < 0 or starts[0] != 0 or starts[-1] != len(scores) or (np.diff(starts) < 1).any():
            raise InputError("starts: must rise from 0 to the number of candidates, one or more a part")
        if rate < 0:
            raise InputError("rate: must not be negative")
        if divisors is not None and (len(divisors) != count or (divisors < 1).any()):
            raise InputError("divisors: give one positive integer for every part")

        def rate_of(part: int) -> Fraction:
            return rate / (1 if divisors is None else int(divisors[part]))

        doubles = np.full(count, _selection.rounded(rate))
        if divisors is not None:
            doubles /= divisors
        return _selection.select(self.keystream, scores, starts, doubles, rate_of)


def check_scale(scale: Fraction) -> tuple[int, int]:
    """Refuse a scale that cannot be drawn; else give its numerator and denominator."""
    return _checked("scale", scale, _LARGEST_SCALE)


def check_variance(variance: Fraction) -> tuple[int, int]:
    """Refuse a variance that cannot be drawn; else give its numerator and denominator."""
    return _checked("variance", variance, _LARGEST_SCALE**2)


def _checked(name: str, size: Fraction, largest: int) -> tuple[int, int]:
    if size.numerator <= 0:
        raise InputError(f"{name}: must be positive")
    if size.numerator >= size.denominator * largest:
        raise InputError(f"{name}: noise this large would leave 64-bit integers; spend more budget")
    return size.numerator, size.denominator


_SYSTEM = Noise(Keystream())
