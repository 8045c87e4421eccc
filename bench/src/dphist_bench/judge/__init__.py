"""The judge: accuracy, coverage, widths, CPU, memory, size and files met, in one file, and beside another one.

``dphist bench run judge -o NOW.json`` measures this version, ``--beside BASELINE.json`` prints the two side by side and
fails where the rules of the game are broken. A change of `auto`, of intervals or of the house is kept by what it says,
and by nothing else.

Data are drawn by numbers (`dphist_bench.judge.cases`). Numbers from `FRESH` on are for judging: nobody chooses
a constant, looks at a single case or repairs a shape by them. Whoever tunes uses `--tuning`, which has other numbers.
"""

from __future__ import annotations

from dphist_bench.judge.judge import measure

__all__ = ["measure"]
