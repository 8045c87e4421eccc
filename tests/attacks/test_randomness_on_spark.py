"""Noise where Spark runs our code: nothing that draws can travel, and every worker has its own key."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dphist
from dphist.private.noise import Noise
from dphist.sources import count

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    # PySpark leaves the sockets it collects through to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def draw(_=None):
    return tuple(Noise.system().laplace(Fraction(1000), 64).tolist())


def steal(kind):
    """Things that hold a keystream, or lead to one."""
    right = dphist.testing.open_counts(np.arange(4), 1)
    return {"noise": Noise.system(), "keystream": Noise.system().keystream, "right": right}[kind]


@pytest.mark.parametrize("kind", ["noise", "keystream", "right"])
def test_nothing_that_draws_can_be_sent_to_a_spark_worker(spark_session, kind):
    """Neither as data nor inside a function; Spark would run it in many processes, and again after a failure."""
    secret = steal(kind)
    context = spark_session.sparkContext
    with pytest.raises(Exception, match="cannot be copied or pickled"):
        context.parallelize([secret], 1).collect()
    with pytest.raises(Exception, match="cannot be copied or pickled"):
        context.parallelize(range(2), 2).map(lambda _: str(secret)).collect()


def test_spark_workers_draw_their_own_noise(spark_session):
    # Workers are forked from one daemon, and used again for later tasks.
    def drawn_there(_):
        from fractions import Fraction

        from dphist.private.noise import Noise

        return tuple(Noise.system().laplace(Fraction(1000), 64).tolist())

    context = spark_session.sparkContext
    drawn = [draw()]
    for _ in range(3):
        drawn += context.parallelize(range(8), 8).map(drawn_there).collect()
    assert len(set(drawn)) == 25


def test_counting_on_spark_draws_nothing_anywhere(spark_session):
    """Which rows of a person count is decided by a hash: the same every time, in every partitioning."""
    rows = pa.table({"id": [i % 40 for i in range(400)], "x": [i % 7 for i in range(400)]})
    domain = dphist.Domain([dphist.Ordinal("x", range(7))])
    frame = spark_session.createDataFrame(rows)
    counted = {
        count(frame.repartition(parts), domain, dphist.Unit(rows=2, id="id")).counts.tobytes()
        for parts in (1, 3, 5)
    }
    assert len(counted) == 1
