"""Our own way: a path and a domain in, a saved release out."""

from __future__ import annotations

import json
import sys
from typing import Any

dphist: Any = None


def load() -> str:
    """Import what publishing needs."""
    global dphist
    # What `publish` and `save` would import by themselves, so that a start is a start for everybody: of few rows no
    # engine is loaded.
    import cryptography.hazmat.primitives.ciphers  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import dphist as imported
    import dphist.publishing.door
    from dphist.sources.files.few import MOST_ROWS

    if _rows() > MOST_ROWS:
        import duckdb  # noqa: F401

    dphist = imported
    return f"dphist {imported.__version__}"


def _rows() -> int:
    """How many rows this process was started for; none where it was not started for a job."""
    import pyarrow.parquet

    try:
        records = json.loads(sys.argv[1])["records"]
    except (IndexError, KeyError, TypeError, ValueError):
        return 0
    return int(pyarrow.parquet.read_metadata(records).num_rows)


def publish(
    records: str, sizes: list[int], epsilon: str, out: str, mechanism: str = "laplace", asked: str = ""
) -> None:
    """Count, add noise, and save a release: every cell with its labels, the guarantee and the transcript.

    ``asked`` names the workload that will be asked, which is what ``auto`` wants to know.
    """
    domain = dphist.Domain([dphist.Ordinal(f"a{axis}", range(size)) for axis, size in enumerate(sizes)])
    workload = getattr(dphist.Workload, asked)(domain) if asked else None
    dphist.publish(records, domain, epsilon, mechanism, workload=workload).save(out)
