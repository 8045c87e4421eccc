"""The front door: where source, ledger, mechanism and release meet.

`door` publishes counts, `parts` one release a part, `measures` sums, `adding` more tables of the same records; the rest
is what they check before anything is paid. Uses and the command line import it.
"""
