"""The command line: thin, it parses, calls and prints.

Exit codes: 0 done, 2 wrong use or bad input, 3 budget refused, 130 stopped by Ctrl+C (143 by SIGTERM, 129 by SIGHUP),
1 anything else.

What commands do is imported when it is done. They stand in:

    commands   publish, query, show, verify, sql
    custody    start, rehearse, add, uncounted
    budgets    ledger …
    schemas    schema …
    handing    export, records, report, dossier, plot, explore
    trying     mechanisms, audit, plan, compare, demo, bench

Next to nothing is loaded before `run` is called: until then Ctrl+C is answered by Python, with a traceback.
"""

from __future__ import annotations

import os
import sys

from dphist.errors import DphistError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn


def run() -> None:
    """Run the command line as a process of its own."""
    try:
        from dphist.cli.ending import heeding_signals, steady_streams

        steady_streams()
        with heeding_signals():
            _run()
    except KeyboardInterrupt:
        _stopped()


def _run() -> None:
    import threading

    from dphist.cli.ending import ended_by

    # Threads of NumPy's linear algebra spin for 0.03 s of the processor from the moment it is loaded, waiting for
    # work that does not come; told so before it is, they sleep. As many do the same sums, so the bits are the same.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    try:
        main()
    except SystemExit as done:
        # Whoever watches the process wants a word at its end, and so do threads that are still at work; but an
        # engine's may wait for each other for ever once somebody was interrupted.
        watched = sys.gettrace() is not None or sys.getprofile() is not None
        idle = done.code == 0 and not watched and threading.active_count() == 1
        if idle or ended_by() is not None:
            # Files are closed by now. To take everything down would take 0.05 s.
            _leave(int(done.code or 0))
        raise


def _stopped() -> NoReturn:
    """Say so, and that a payment which was made by then is not undone."""
    from signal import SIGINT

    from dphist.cli.ending import ended_by

    signal = ended_by() or SIGINT
    paid = any(word.partition("=")[0] == "--ledger" for word in sys.argv)
    _complain(
        ("stopped" if signal == SIGINT else f"stopped by {signal.name}")
        + "; what was paid for by then stays spent: `dphist ledger show` says" * paid
    )
    sys.exit(128 + signal)


def _leave(code: int) -> None:
    import atexit

    # What others asked for at the end is done; what only frees memory is not.
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        # The reader left: Python's own way out has an answer to that.
        return
    os._exit(code)


def main() -> None:
    """Run the command line; every error we know ends in one line and its exit code, never a traceback."""
    from dphist.cli.ending import ended_by

    _remind_in_one_line()
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        # Letters that the screen lacks are printed by their numbers: what was paid for is not lost to a code page.
        reconfigure(errors="backslashreplace")
    try:
        _command()
        sys.stdout.flush()
        sys.exit(0)
    except KeyboardInterrupt:
        _stopped()
    except Exception as error:
        if ended_by() is not None:
            # An engine that is interrupted has words of its own for it.
            _stopped()
        if isinstance(error, DphistError):
            _complain(str(error))
            sys.exit(error.exit_code)
        if isinstance(error, MemoryError):
            _complain("this does not fit in memory; use coarser bins or fewer attributes")
            sys.exit(1)
        if os.environ.get("DPHIST_TRACEBACK"):
            raise
        # What nobody foresaw may quote a record, so only its kind is told.
        _complain(
            f"internal error ({type(error).__name__}); please report it. DPHIST_TRACEBACK=1 shows where it happened, "
            "but may quote your records: read it before you share it"
        )
        sys.exit(1)


def _command() -> None:
    # What reads the arguments would look for plugins of its own among all that is installed.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    from dphist.cli.application import asked_for
    from dphist.cli.commands import app
    from dphist.cli.ending import ended_by

    try:
        asked_for(app, sys.argv[1:])()
    except SystemExit as done:
        if done.code == 130 or (done.code and ended_by() is not None):
            # What reads the arguments makes an exit code of Ctrl+C, and says no word of what stays spent.
            raise KeyboardInterrupt from None
        if done.code:
            raise


def _remind_in_one_line() -> None:
    """Show reminders as we show errors: in one line, without where in the code they come from."""
    import warnings

    from dphist.errors import CustodyWarning

    shown = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, CustodyWarning):
            _complain(f"note: {message}")
        else:
            shown(message, category, *place, **more)

    warnings.showwarning = show
    warnings.simplefilter("always", CustodyWarning)


def _complain(message: str) -> None:
    from dphist.model.phrases import visible

    sys.stderr.write(visible(f"dphist: {message}", lines=True) + "\n")
