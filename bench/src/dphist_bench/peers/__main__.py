"""``python -m dphist_bench.peers DIR``: an environment for each peer, since no two of them agree on what they need."""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from pathlib import Path

# What was measured; scikit-learn 1.8 removed names that diffprivlib 0.6.6 imports, OpenDP 0.16 wants Polars 1.36.
# OpenDP is given no scikit-learn: it would be imported, and triple the time OpenDP takes to start.
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "opendp": ("opendp==0.16.0", "polars==1.36.1", "numpy", "pyarrow"),
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn<1.8", "polars"),
}


def main(argv: list[str]) -> int:
    """Make what is missing."""
    parser = argparse.ArgumentParser(prog="python -m dphist_bench.peers", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", choices=sorted(REQUIREMENTS), action="append")
    options = parser.parse_args(argv)
    for name in options.only or REQUIREMENTS:
        place = options.folder / name
        python = place / "bin" / "python"
        if not python.is_file():
            venv.create(place, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS[name]], check=True)
        sys.stdout.write(f"{name}: {', '.join(REQUIREMENTS[name])}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
