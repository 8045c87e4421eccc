"""Our own way: a path and a domain in, a saved release out."""

from __future__ import annotations

from typing import Any

dphist: Any = None


def load() -> str:
    """Import what publishing needs."""
    global dphist
    # What `publish` and `save` would import by themselves, so that a start is a start for everybody.
    import cryptography.hazmat.primitives.ciphers  # noqa: F401
    import duckdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    import dphist as imported
    import dphist.publishing.door

    dphist = imported
    return f"dphist {imported.__version__}"


def publish(
    records: str, sizes: list[int], epsilon: str, out: str, mechanism: str = "laplace", asked: str = ""
) -> None:
    """Count, add noise, and save a release: every cell with its labels, the guarantee and the transcript.

    ``asked`` names the workload that will be asked, which is what ``auto`` wants to know.
    """
    domain = dphist.Domain([dphist.Ordinal(f"a{axis}", range(size)) for axis, size in enumerate(sizes)])
    workload = getattr(dphist.Workload, asked)(domain) if asked else None
    dphist.publish(records, domain, epsilon, mechanism, workload=workload).save(out)
