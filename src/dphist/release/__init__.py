"""The published thing: a file anyone may read, query and plot."""

from dphist.release.answers import Answer, Answers, Projection
from dphist.release.file import load
from dphist.release.release import Guarantee, Release
from dphist.release.sparse import SparseRelease

__all__ = ["Answer", "Answers", "Guarantee", "Projection", "Release", "SparseRelease", "load"]
