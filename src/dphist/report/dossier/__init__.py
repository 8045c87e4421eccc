"""The papers that go with a release to a disclosure board, a registry and a catalogue."""

from dphist.report.dossier.folder import write_dossier

__all__ = ["write_dossier"]
