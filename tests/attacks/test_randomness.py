"""Noise that is drawn twice is no noise: forks, threads, processes."""

import multiprocessing
import os
import threading
from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import dphist
from dphist.private.noise import Noise
from dphist_bench.attacks.attack import audit
from dphist_bench.zoo import leaky_mechanisms

DRAWS = 64


def draw(_=None):
    return tuple(Noise.system().laplace(Fraction(1000), DRAWS).tolist())


def test_forked_workers_draw_their_own_noise():
    draw()  # the parent's buffer is half full when it forks
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(4, mp_context=context) as pool:
        drawn = [*pool.map(draw, range(16)), draw()]
    # Two lists of 64 numbers at scale 1000 agree by chance with probability below 1e-180.
    assert len(set(drawn)) == len(drawn)


def test_spawned_workers_draw_their_own_noise():
    # Spark starts its Python workers this way, or forks them from a daemon: both are covered.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        drawn = [*pool.map(draw, range(2)), draw()]
    assert len(set(drawn)) == len(drawn)


def test_a_fork_of_a_fork_draws_its_own_noise():
    draw()
    reader, writer = os.pipe()
    if os.fork() == 0:
        if os.fork() == 0:
            os.write(writer, repr(draw()).encode() + b"\n")
            os._exit(0)
        os.wait()
        os.write(writer, repr(draw()).encode() + b"\n")
        os._exit(0)
    os.wait()
    mine = repr(draw())
    os.close(writer)
    with os.fdopen(reader) as pipe:
        drawn = pipe.read().strip().split("\n")
    assert len({*drawn, mine}) == 3


def test_threads_draw_their_own_noise():
    drawn = []
    threads = [threading.Thread(target=lambda: drawn.append(draw())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(drawn)) == 8


def test_a_process_that_was_copied_between_publications_draws_anew():
    """A virtual machine resumed twice: the same memory, buffers included; only the kernel's entropy differs."""
    draw()
    stream = Noise.system().keystream._streams
    Noise.system().laplace(Fraction(1000), DRAWS)
    memory = stream.cipher, stream.buffer, stream.position, stream.left
    drawn = []
    for _ in range(2):
        stream.cipher, stream.buffer, stream.position, stream.left = memory
        drawn.append(draw())
    assert drawn[0] != drawn[1]


def test_every_publication_asks_the_system_for_a_key(monkeypatch):
    asked = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(size) or real(size))  # type: ignore[func-returns-value]
    histogram = dphist.Histogram(dphist.Domain([dphist.Ordinal("x", range(4))]), np.arange(4))
    for turn in range(1, 4):
        dphist.publish(histogram, epsilon=1, mechanism="laplace")
        assert asked == [32] * turn


@pytest.mark.audit
@pytest.mark.parametrize("name", ["mutant: shared keystream", "mutant: reused seed"])
def test_noise_that_repeats_is_caught(name):
    leaky = leaky_mechanisms()[name]
    report = audit(
        leaky.mechanism, epsilon=1, runs=600, pairs=leaky.pairs, observe=leaky.observe, confidence=0.999
    )
    assert not report.passed
    assert report.epsilon_lower > 2


def test_runs_of_one_release_are_not_correlated_with_the_next():
    one, other = Noise.system().laplace(Fraction(10), 200_000), Noise.system().laplace(Fraction(10), 200_000)
    # Six standard deviations: wrong once in 5e8.
    assert abs(np.corrcoef(one, other)[0, 1]) < 6 / np.sqrt(one.size)
