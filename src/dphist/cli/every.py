"""The whole command line: the files that hold commands put them on one `app` when they are imported."""

from dphist.cli import custody
from dphist.cli.commands import app

__all__ = ["app", "custody"]
