"""A PostgreSQL server that goes down in the middle: nothing acknowledged is lost, nothing is spent twice."""

import subprocess
import sys
import textwrap
import threading
import time
from fractions import Fraction

import numpy as np
import psycopg
import pytest

import dphist
from dphist.errors import LedgerError
from postgres_server import missing, running

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
HISTOGRAM = dphist.Histogram(dphist.Domain([dphist.Ordinal("x", range(4))]), np.arange(4))


@pytest.fixture(scope="module")
def server():
    if why := missing():
        pytest.skip(why)
    with running() as made:
        yield made


@pytest.fixture
def url(server, state_folder, request):
    return f"{server.address}/postgres#ledger_{abs(hash(request.node.name)) % 10**9}"


WRITER = """
    import sys, time
    from dphist.errors import LedgerError
    from dphist.private.ledger import Ledger
    book, turn = Ledger.open(sys.argv[1], patience=5), 0
    while True:
        turn += 1
        try:
            spend = book.reserve("people", "1/1000", purpose=f"attempt {turn}")
            print("acknowledged", spend.id, spend.hash, turn, flush=True)
        except LedgerError as error:
            print("refused", turn, str(error), flush=True)
            time.sleep(0.05)
"""


def test_a_server_that_crashes_again_and_again(server, url):
    with dphist.Ledger.open(url) as book:
        book.create("people", 1000)
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), url], stdout=subprocess.PIPE, text=True
    )
    said: list[str] = []
    reader = threading.Thread(target=lambda: said.extend(child.stdout))  # type: ignore[arg-type]
    reader.start()
    crashes = 0

    def acknowledged():
        return sum(line.startswith("acknowledged") for line in said)

    try:
        for crash in (server.stop_at_once, server.kill, server.stop_at_once, server.kill):
            before, deadline = acknowledged(), time.monotonic() + 60
            # It is at work again, whatever happened before; and then the next blow falls.
            while acknowledged() < before + 20 and time.monotonic() < deadline:
                time.sleep(0.01)
            assert acknowledged() >= before + 20, said[-3:]
            crash()
            crashes += 1
            server.start()
        time.sleep(0.5)
    finally:
        child.kill()
        child.wait()
        reader.join()
        child.stdout.close()  # type: ignore[union-attr]
    # Our kill may cut the last line in two; what was not said to the end was not acknowledged.
    said = [line for line in said if line.endswith("\n")]
    done = [line.split() for line in said if line.startswith("acknowledged")]
    refused = [line for line in said if line.startswith("refused")]
    with dphist.Ledger.open(url) as book:
        entries = {entry.id: entry for entry in book.entries("people")}
        # Every acknowledged spend is there, as it was acknowledged.
        for _, number, seal, turn in done:
            assert entries[int(number)].hash == seal
            assert entries[int(number)].purpose == f"attempt {turn}"
        # None is there twice; what is there without an acknowledgement was refused, or cut off by our own kill.
        purposes = [entry.purpose for entry in entries.values()]
        assert len(set(purposes)) == len(purposes)
        assert len(done) <= len(entries) <= len(done) + len(refused) + 1
        assert book.spent("people") == Fraction(len(entries), 1000)
        book.verify()
    assert crashes == 4
    # A message says what to do.
    for line in refused:
        assert "nothing was acknowledged, so draw no noise" in line
        assert "check that the server runs" in line


def write_while(blow, book):
    with book._store.writing() as run:
        run("UPDATE budgets SET spent = '1/2'")
        blow()
        # The first process is gone; the one that serves us notices within a second or two.
        for _ in range(600):
            run("SELECT 1")
            time.sleep(0.05)


@pytest.mark.parametrize("blow", ["stop_at_once", "kill"])
def test_a_transaction_that_the_server_does_not_survive(server, url, blow):
    with dphist.Ledger.open(url) as book:
        book.create("people", 1)
        with pytest.raises(LedgerError, match="nothing was acknowledged"):
            write_while(getattr(server, blow), book)
        server.start()
        # The same ledger goes on, over a new connection, and knows of nothing that was not committed.
        assert book.spent("people") == 0
        book.reserve("people", 1, "afterwards")
        assert book.spent("people") == 1


def test_a_commit_whose_answer_is_lost_counts_as_spent_and_publishes_nothing(url, monkeypatch):
    """The server committed, and went down before it could say so: the budget is gone, and no noise was drawn."""
    from dphist.private.ledger.postgres import PostgresStore
    from dphist.private.noise import Keystream

    real = PostgresStore._run

    def lost(self, sql, *values):
        answer = real(self, sql, *values)
        if sql == "COMMIT":
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return answer

    with dphist.Ledger.open(url) as book:
        book.create("people", 3)
        with monkeypatch.context() as patch:
            patch.setattr(dphist.Ledger, "check", lambda *_, **__: Fraction(1))
            patch.setattr(PostgresStore, "_run", lost)
            patch.setattr(
                Keystream, "take", lambda *_: pytest.fail("noise was drawn without an acknowledgement")
            )
            with pytest.raises(LedgerError, match="nothing was acknowledged, so draw no noise"):
                dphist.publish(HISTOGRAM, epsilon=1, ledger=book, dataset="people")
        assert book.spent("people") == 1
        release = dphist.publish(HISTOGRAM, epsilon=1, ledger=book, dataset="people")
        assert book.spent("people") == 2
        assert release.receipt is not None
        assert release.receipt[:2] == ("people", book.entries("people")[-1].id)


def test_publishing_while_the_server_is_down_says_so_and_starts_again_with_it(server, url):
    with dphist.Ledger.open(url, patience=2) as book:
        book.create("people", 2)
        server.stop_at_once()
        try:
            with pytest.raises(LedgerError, match="check that the server runs"):
                dphist.publish(HISTOGRAM, epsilon=1, ledger=book, dataset="people")
        finally:
            server.start()
        dphist.publish(HISTOGRAM, epsilon=1, ledger=book, dataset="people").verify()
        assert book.spent("people") == 1
