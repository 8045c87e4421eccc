"""``python -m dphist.bench NAME [options]``: one command per table or figure."""

from __future__ import annotations

import sys
from importlib import import_module

# Each name is a module of this package with ``main(argv) -> exit code`` that prints a table.
EXPERIMENTS: dict[str, str] = {
    "ledger": "16 processes race for one ledger and are killed hundreds of times: what is lost",
    "noise": "exact draws per CPU second beside numpy and OpenDP",
}


def main(argv: list[str]) -> int:
    """Run the experiment named first, or list them."""
    if not argv or argv[0] not in EXPERIMENTS:
        for name, what in sorted(EXPERIMENTS.items()):
            sys.stdout.write(f"{name:22} {what}\n")
        return 0 if not argv else 2
    module = import_module(f"dphist.bench.{argv[0].replace('-', '_')}")
    return int(module.main(argv[1:]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
