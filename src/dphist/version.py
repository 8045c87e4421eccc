"""The version, in its one place: packaging reads it here, and whatever prints it stands above."""

__version__ = "0.1.0"
