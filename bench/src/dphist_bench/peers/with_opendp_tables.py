"""OpenDP's contingency tables (AIM and MST, fitted by mbi) on coded columns.

Run by a Python that has opendp[mbi]: ``with_opendp_tables.py FOLDER NAME SECONDS`` (of processor time, at most). Reads
``columns.npz`` of the folder (codes, a row for each record; sizes; rho), and writes the model's tables of all pairs and
its records beside it. One line of JSON says what it took.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np


def main(folder: Path, name: str, seconds: float) -> None:
    """Fit one of them."""
    import opendp.prelude
    import polars as pl

    dp: Any = opendp.prelude
    held = np.load(folder / "columns.npz")
    codes, sizes, rho = held["codes"], held["sizes"].tolist(), float(held["rho"])
    names = [f"c{place}" for place in range(len(sizes))]
    frame = pl.LazyFrame({column: codes[:, place].astype(np.int64) for place, column in enumerate(names)})
    dp.enable_features("contrib")
    _spend_a_hair_less()
    if seconds:
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    context = dp.Context.compositor(
        data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho)
    )
    query = context.query(rho=rho).contingency_table(
        keys={column: list(range(size)) for column, size in zip(names, sizes, strict=True)},
        algorithm=algorithm(dp, name),
    )
    start = time.process_time()
    table = query.release()
    fitted = time.process_time()
    found: dict[str, Any] = {}
    for a, b in combinations(range(len(sizes)), 2):
        # The last value of every column is OpenDP's own, for what is none of the others.
        found[f"{a},{b}"] = np.asarray(table.project([names[a], names[b]]))[: sizes[a], : sizes[b]]
    np.savez(str(folder / f"{name}-pairs.npz"), **found)
    records = table.synthesize()
    np.save(
        folder / f"{name}-records.npy", np.stack([records[c].fill_null(0).to_numpy() for c in names], axis=1)
    )
    line = {
        "fit": fitted - start,
        "all": time.process_time() - start,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(line))


def _spend_a_hair_less() -> None:
    """Let MST's shares of its budget add up to less than the whole.

    Each is rounded to the next float, they then add up to more than all, and OpenDP refuses them. A billionth less is
    no handicap.
    """
    from opendp.extras.mbi import _mst

    _mst.prior = lambda share: share * (1.0 - 1e-9)


def algorithm(dp: Any, name: str) -> Any:
    """By its name: MST; AIM over pairs at its defaults, or with a smaller model and fewer iterations."""
    if name == "MST":
        return dp.mbi.MST()
    if name == "AIM":
        return dp.mbi.AIM(queries=2)

    def estimator(domain: Any, loss: Any, *, potentials: Any = None) -> Any:
        from mbi.estimation import mirror_descent

        return mirror_descent(domain, loss, potentials=potentials, iters=300)

    return dp.mbi.AIM(queries=2, max_size=10.0, estimator=estimator)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3]))
