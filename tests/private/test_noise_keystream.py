"""Random bytes are never handed out twice: not to threads, not to children, not to copies."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest

from dphist.errors import InputError, NotPrivate
from dphist.private.noise import Keystream, Noise, keystream


def bytes_of_child(work):
    """Run ``work`` in a forked child and give back the bytes it returns."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, work())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("stream", [Keystream(), Keystream.for_tests(1)], ids=["system", "test"])
def test_a_forked_child_repeats_nothing(stream):
    stream.take(64)  # half-used buffer that the child inherits
    one = bytes_of_child(lambda: stream.take(1024).tobytes())
    two = bytes_of_child(lambda: stream.take(1024).tobytes())
    own = stream.take(1024).tobytes()
    blocks = [text[i : i + 16] for text in (one, two, own) for i in range(0, 1024, 16)]
    assert len(one) == len(two) == 1024
    assert len(set(blocks)) == len(blocks)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("stream", [Keystream(), Keystream.for_tests(1)], ids=["system", "test"])
def test_a_process_number_that_comes_round_again_repeats_nothing(stream, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: 4321)
    stream.take(64)
    child = bytes_of_child(lambda: stream.take(1024).tobytes())
    own = stream.take(1024).tobytes()
    blocks = [text[i : i + 16] for text in (child, own) for i in range(0, 1024, 16)]
    assert len(set(blocks)) == len(blocks) == 128


def test_forks_that_python_does_not_see_repeat_nothing(monkeypatch):
    stream = Keystream.for_tests(1)
    stream.take(64)
    rest = stream._streams.buffer.tobytes()
    monkeypatch.setattr(os, "getpid", lambda: 4321)
    assert stream.take(1024).tobytes() not in rest


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_noise_differs():
    noise = Noise.system()
    noise.laplace(Fraction(10**9), 4)
    child = bytes_of_child(lambda: noise.laplace(Fraction(10**9), 8).tobytes())
    assert child != noise.laplace(Fraction(10**9), 8).tobytes()


@pytest.mark.parametrize("stream", [Keystream(), Keystream.for_tests(1)], ids=["system", "test"])
def test_threads_share_no_bytes(stream):
    taken: list[bytes] = []
    together = threading.Barrier(4)

    def work():
        together.wait()
        for size in (16, 48, 4096, 100_000, 16) * 20:
            taken.append(stream.take(size).tobytes())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    blocks = [text[i : i + 16] for text in taken for i in range(0, len(text) - 15, 16)]
    assert len(set(blocks)) == len(blocks)


def test_bytes_handed_out_stay_as_they_are():
    stream = Keystream()
    first = stream.take(64)
    kept = first.copy()
    for _ in range(2000):
        stream.take(1000)
    assert (first == kept).all()


def test_the_buffer_and_the_rest_never_repeat():
    stream = Keystream()
    taken = [stream.take(size).tobytes() for size in (16, 8192, 4096, 32, 200_000, 16, 4000, 70_000) * 10]
    blocks = [text[i : i + 16] for text in taken for i in range(0, len(text) - 15, 16)]
    assert len(set(blocks)) == len(blocks)


def test_a_key_is_not_used_for_ever(monkeypatch):
    monkeypatch.setattr(keystream, "_REKEY_AFTER", 1 << 15)
    stream = Keystream.for_tests(3)
    stream.take(8)
    first = stream._streams.cipher
    blocks = [stream.take(4000).tobytes() for _ in range(20)]
    assert stream._streams.cipher is not first
    assert len(set(blocks)) == 20


def test_seeds_repeat_and_differ():
    assert (Keystream.for_tests(5).take(999) == Keystream.for_tests(5).take(999)).all()
    assert (Keystream.for_tests(5).take(99) != Keystream.for_tests(6).take(99)).any()
    assert (Keystream.for_tests(b"a").take(99) != Keystream.for_tests(b"b").take(99)).any()
    assert (Keystream().take(99) != Keystream().take(99)).any()
    with pytest.raises(InputError):
        Keystream.for_tests(-1)


def test_only_test_streams_are_marked():
    assert Keystream.for_tests(0).test is True
    assert Keystream().test is False
    assert Noise.system().keystream.test is False


@pytest.mark.parametrize("make", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_keystream_cannot_be_copied(make):
    with pytest.raises(NotPrivate):
        make(Keystream())


def test_noise_cannot_be_pickled():
    with pytest.raises(NotPrivate):
        pickle.dumps(Noise.system())


def test_views_are_aligned():
    stream = Keystream()
    for size in (3, 5, 5000, 17):
        stream.take(size)
        assert stream.take(64).view(np.uint64).flags.aligned


def test_integers_are_uniform():
    stream = Keystream.for_tests(8)
    drawn = [stream.integer(3) for _ in range(8000)]
    seen = np.bincount(drawn, minlength=8)
    assert len(seen) == 8
    assert (abs(seen - 1000) < 6 * np.sqrt(1000)).all()
    assert stream.integer(200).bit_length() > 150
