"""Experiments of this paper."""

from __future__ import annotations

from dphist.bench.experiment import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
