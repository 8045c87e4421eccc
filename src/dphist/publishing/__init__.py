"""The front door: where source, ledger, mechanism and release meet."""
