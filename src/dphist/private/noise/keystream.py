"""Random bytes that nobody can predict and that are never handed out twice."""

from __future__ import annotations

import hashlib
import itertools
import operator
import os
import threading
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dphist.errors import InputError, NotPrivate

Bytes = npt.NDArray[np.uint8]

_BUFFER = 1 << 14
_ZEROS = np.zeros(1 << 16, dtype=np.uint8)
# Far below the 2^64 blocks at which AES stops looking random; a new key also makes old bytes unrecoverable.
_REKEY_AFTER = 1 << 30

# Counts forks on the way from the first process to this one. The process number alone could come round again
# in a grandchild; forks made outside Python do not count here. Together they miss nothing.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):  # not on systems that cannot fork
    os.register_at_fork(after_in_child=_count_fork)


class _Stream(threading.local):
    """One thread's cipher and what is left of its buffer.

    ``threading.local`` runs ``__init__`` anew in every thread, so no two threads share a key or a buffer, and
    no lock is needed (a lock held by another thread while this one forks would stay locked in the child).
    """

    def __init__(self) -> None:
        self.process = 0  # of no process: the first use asks for a key
        self.forks = 0
        self.cipher: Any = None
        self.left = 0
        self.buffer: Bytes = np.empty(0, dtype=np.uint8)
        self.position = 0


class Keystream:
    """An endless supply of AES-256-CTR bytes under a key from the operating system.

    Why no byte is used twice: every thread of every process has its own key. A forked child sees that it is
    another process, drops the buffer it inherited and asks for a new key before the first byte. Within a
    thread the position moves forward before the bytes are handed out. A keystream cannot be copied or
    pickled, because the copy would repeat the original. (What no program can see is a virtual machine that is
    cloned while it draws; between publications `renew` helps.)
    """

    def __init__(self) -> None:
        self._seed: bytes | None = None
        self._streams = _Stream()
        self._order = itertools.count()

    @classmethod
    def for_tests(cls, seed: int | bytes) -> Keystream:
        """Give the same bytes for the same seed; releases refuse it because ``test`` is true.

        Threads are numbered in the order in which they first ask, and the number goes into the key.
        """
        if not isinstance(seed, bytes):
            number = operator.index(seed)
            if number < 0:
                raise InputError("seed: must not be negative")
            seed = b"int" + number.to_bytes(number.bit_length() // 8 + 1, "big")
        made = cls()
        made._seed = hashlib.sha256(b"dphist test keystream" + seed).digest()
        return made

    @property
    def test(self) -> bool:
        """Whether the bytes come from a seed that someone may know."""
        return self._seed is not None

    def take(self, size: int) -> Bytes:
        """Hand out ``size`` bytes that nobody else gets, aligned for 64-bit words."""
        stream = self._streams
        if stream.process != os.getpid() or stream.forks != _forks or stream.left <= 0:
            self._rekey(stream)
        # Whole 64-bit words, so that views of the bytes as wider integers are aligned.
        padded = (size + 7) & -8
        if padded > _BUFFER // 4:
            return _encrypt(stream, padded)[:size]
        while True:
            # Nothing is called between these three lines, so that not even a signal handler that draws noise
            # in between can be given the same bytes.
            start = stream.position
            stream.position = start + padded
            buffer = stream.buffer
            if start + padded <= len(buffer):
                return buffer[start : start + size]
            # A new array, not the old one refilled: bytes handed out as views stay as they are.
            stream.buffer = _encrypt(stream, _BUFFER)
            stream.position = 0

    def renew(self) -> None:
        """Draw the next bytes under a new key from the operating system.

        Asked for whenever a gate opens: a virtual machine that was copied while nothing was published then draws
        differently in every copy, if its kernel notices that it was copied (Linux since 5.18, told by the hypervisor).
        """
        if self._seed is None:
            self._streams.left = 0

    def integer(self, bits: int) -> int:
        """Draw an integer uniformly from 0 … 2^bits − 1."""
        drawn = int.from_bytes(self.take((bits + 7) // 8).tobytes(), "little")
        return drawn >> (-bits % 8)

    def _rekey(self, stream: _Stream) -> None:
        if self._seed is None:
            key = os.urandom(32)
        else:
            # The process matters only after a fork, where the child must not repeat its parent.
            inherited = stream.process != 0 and (stream.process, stream.forks) != (os.getpid(), _forks)
            branch = b"%d %d" % (os.getpid(), _forks) if inherited else b""
            key = hashlib.sha256(self._seed + b"%d " % next(self._order) + branch).digest()
        # A fresh key for every stream, so a constant first counter value never repeats a block.
        # Loaded here: who only reads a release draws no noise.
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        stream.cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        stream.buffer = np.empty(0, dtype=np.uint8)
        stream.position = 0
        stream.left = _REKEY_AFTER
        stream.process, stream.forks = os.getpid(), _forks

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise NotPrivate("a keystream cannot be copied or pickled: the copy would repeat its noise")


def _encrypt(stream: _Stream, size: int) -> Bytes:
    """Give the next ``size`` bytes of the cipher (CTR mode is the encryption of zeros)."""
    stream.left -= size
    # The cipher asks for room for one more block than it writes.
    out = np.empty(size + 16, dtype=np.uint8)
    for start in range(0, size, len(_ZEROS)):
        step = min(len(_ZEROS), size - start)
        stream.cipher.update_into(_ZEROS[:step], out[start : start + step + 16])
    return out[:size]
