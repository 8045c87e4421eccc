"""V-optimal histograms: the least-cost step function through a row of integers.

Any loss with any search::

                    penalised (price per bucket)      fixed (k buckets)
    squared         one sweep                         k sweeps, rows kept at checkpoints
    absolute        one sweep                         k sweeps, rows kept at checkpoints

The sweeps of ``squared`` and ``absolute`` use functional pruning; ``search`` drives them.
Divide-and-conquer would be wrong here: the bucket costs of unsorted data are not Monge. Pruning by cost alone (PELT)
degrades to n² on long buckets. The textbook programs they are measured against are in dphist-bench.
"""

from dphist.kernels.segmentation.search import LARGEST_EXACT_SQUARES, LARGEST_SUM, Loss, Rows, segment

__all__ = ["LARGEST_EXACT_SQUARES", "LARGEST_SUM", "Loss", "Rows", "segment"]
