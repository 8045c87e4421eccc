"""The papers that go with a release to a disclosure board, a registry and a catalogue."""
