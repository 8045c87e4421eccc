"""``python -m dphist.bench NAME [options]``: one command per table or figure."""

from __future__ import annotations

import sys
from importlib import import_module

# Each name is a module of this package with ``main(argv) -> exit code`` that prints a table.
EXPERIMENTS: dict[str, str] = {
    "explore": "what one interaction with the explorer costs the server on a release of a million cells",
    "blocks": "building blocks: CPU by number of bins; with --data, errors beside public implementations",
    "paper002": "Table 2 and Figures 3–18 of the building blocks paper",
    "segmentation": "CPU time of the segmentation kernels beside the textbook programs, up to a million cells",
    "paper000": "NoiseFirst and StructureFirst: squared and absolute error of single cells beside the paper's figures",
    "noisefirst": "which price per bucket NoiseFirst should ask, by measured error",
    "accuracy": "auto beside the best peer chosen with hindsight: cells, prefixes, rectangles, marginals",
    "paper003": "lossy compression: KL-divergence and range error of EFPA, P-HPartition and their competitors",
    "compression": "CPU time of EFPA, P-HPartition, isotonic and MWEM up to a million cells, beside a floor",
    "paper001": "DPCube: error formulas, histograms, random rectangles, classification, blocking (Figs. 9–18)",
    "cubes": "DPCube on ten million cells, its growth; 256 × 256 sets beside other mechanisms with --data",
    "counting": "ten million rows into a cube: CPU and memory beside plain DuckDB SQL",
    "engines": "fifty million rows, two rows a person, a trillion cells: CPU and memory",
    "ledger": "16 processes race for one ledger and are killed hundreds of times: what is lost",
    "paper004": "error of Basic, Privelet+ and Privelet* against coverage and selectivity, and their time",
    "privelet": "a census-sized cube end to end: CPU against one pass, memory, NumPy, linear growth",
    "trust": "load: the ledger under 64 writers, the explorer under many clients; what running times tell",
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
