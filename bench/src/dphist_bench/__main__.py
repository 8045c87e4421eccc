"""``python -m dphist_bench NAME [options]``: one measurement; the papers' experiments are run by ``dphist bench``."""

from __future__ import annotations

import sys

from dphist_bench.catalogue import MEASUREMENTS, measure


def main(argv: list[str]) -> int:
    """Run the measurement named first, or list them."""
    if argv and argv[0] in MEASUREMENTS:
        return measure(argv[0], argv[1:])
    sys.stdout.write("measurements; `dphist bench list` names the experiments as well\n")
    for name, what in sorted(MEASUREMENTS.items()):
        sys.stdout.write(f"{name:22} {what}\n")
    return 0 if not argv else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
