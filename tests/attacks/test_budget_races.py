"""Many publish at once from one budget: exactly as many win as it pays for, and no loser has drawn any noise."""

import subprocess
import sys
import textwrap
import threading
from fractions import Fraction

import numpy as np
import pytest

import dphist
from dphist.errors import BudgetExhausted
from dphist.private.noise import Keystream

DOMAIN = dphist.Domain([dphist.Ordinal("x", range(4))])
HISTOGRAM = dphist.Histogram(DOMAIN, np.arange(4))


def race(count, attempt):
    """Let threads through one door at the same moment; what each of them came back with."""
    start, outcomes = threading.Barrier(count), []

    def run(number):
        start.wait()
        try:
            outcomes.append(attempt(number))
        except Exception as error:
            outcomes.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.parametrize("shared", [True, False], ids=["one ledger object", "a ledger object each"])
def test_of_threads_with_the_same_last_budget_one_wins(shared, tmp_path):
    place = tmp_path / "budget.db"
    with dphist.Ledger.open(place) as book:
        book.create("people", 10)
        for turn in range(10):

            def attempt(_):
                if shared:
                    return dphist.publish(HISTOGRAM, epsilon=1, ledger=book, dataset=dataset)  # noqa: B023
                with dphist.Ledger.open(place) as mine:
                    return dphist.publish(HISTOGRAM, epsilon=1, ledger=mine, dataset=dataset)  # noqa: B023

            dataset = f"round {turn}"
            book.create(dataset, "1.9")  # enough for one, not for two
            outcomes = race(4, attempt)
            won = [outcome for outcome in outcomes if isinstance(outcome, dphist.Release)]
            lost = [outcome for outcome in outcomes if isinstance(outcome, BudgetExhausted)]
            assert (len(won), len(lost)) == (1, 3), outcomes
            assert book.spent(dataset) == 1
            assert [entry.status for entry in book.entries(dataset)] == ["opened"]
            assert won[0].receipt is not None
            assert won[0].receipt[:2] == (dataset, book.entries(dataset)[0].id)


def test_whoever_loses_has_drawn_no_noise(tmp_path, monkeypatch):
    """Check passes for everybody, then one pays: the others are refused at the gate, before the first draw."""
    # The race that the early look cannot see.
    monkeypatch.setattr(dphist.Ledger, "check", lambda *_, **__: Fraction(1))
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 1)
        dphist.publish(HISTOGRAM, epsilon=1, mechanism="s1", ledger=book, dataset="people")
        monkeypatch.setattr(Keystream, "take", lambda *_: pytest.fail("noise was drawn without budget"))
        for name in ("laplace", "s1", "structurefirst", "dpcube", "privelet", "sparselaplace", "efpa"):
            with pytest.raises(BudgetExhausted):
                dphist.publish(HISTOGRAM, epsilon=1, mechanism=name, ledger=book, dataset="people")
        assert book.spent("people") == 1


def test_one_reservation_opens_one_gate_whoever_races_for_it(tmp_path):
    with dphist.Ledger.open(tmp_path / "budget.db") as book:
        book.create("people", 100)
        for _ in range(10):
            reservation = book.reserve("people", 1, purpose="race")
            outcomes = race(4, lambda _: reservation.open())  # noqa: B023
            assert sum(outcome is None for outcome in outcomes) == 1
            assert sum(isinstance(outcome, dphist.errors.RightUsed) for outcome in outcomes) == 3


def test_one_right_answers_one_thread(tmp_path):
    from dphist.private.queries import Identity
    from dphist.testing import open_counts

    for seed in range(20):
        right = open_counts(np.arange(4), 1, seed=seed)
        outcomes = race(4, lambda _: right.measure(Identity()))  # noqa: B023
        assert sum(isinstance(outcome, dphist.errors.RightUsed) for outcome in outcomes) == 3


@pytest.mark.slow
def test_processes_and_threads_together_spend_exactly_the_budget(tmp_path):
    place = tmp_path / "budget.db"
    with dphist.Ledger.open(place) as book:
        book.create("people", "2.5")
    code = textwrap.dedent(f"""
        import threading, numpy as np, dphist
        domain = dphist.Domain([dphist.Ordinal("x", range(4))])
        histogram = dphist.Histogram(domain, np.arange(4))
        def publish():
            with dphist.Ledger.open({str(place)!r}) as book:
                try:
                    while True:
                        dphist.publish(histogram, epsilon="1/10", ledger=book, dataset="people")
                        print("won", flush=True)
                except dphist.errors.BudgetExhausted:
                    print("lost", flush=True)
        threads = [threading.Thread(target=publish) for _ in range(3)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """)
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    said = "".join(child.communicate(timeout=120)[0] for child in running)
    assert (said.count("won"), said.count("lost")) == (25, 9)
    with dphist.Ledger.open(place) as book:
        assert book.remaining("people") == 0
        assert len(book.entries("people")) == 25
        book.verify()
