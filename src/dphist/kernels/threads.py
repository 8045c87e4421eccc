"""Long loops on both cores: kernels and NumPy release the interpreter, so threads run side by side."""

from __future__ import annotations

from collections.abc import Callable

THREADS = 2


def together(work: Callable[[int, int], None], items: int, threads: int = THREADS) -> None:
    """Share items out among threads, neighbours to the same one."""
    if threads < 2 or items < 2:
        work(0, items)
        return
    # Loaded here: most releases are too small for it.
    from concurrent.futures import ThreadPoolExecutor

    cuts = [items * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, cuts[:-1], cuts[1:]))
