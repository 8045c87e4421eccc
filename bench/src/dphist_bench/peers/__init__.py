"""dphist beside other libraries at the same job: records in, private counts of every cell out.

Each run is a process of its own, in the peer's own environment, so that start-up, memory and versions are its own:

    ways.py       the job as each library's documentation has a competent user do it, in the fastest way it shows
    inside.py     does one of these, perhaps in another Python, and reports what it cost
    outside.py    makes records, starts processes, reads outputs
    jobs.py       what is measured, as experiments of `dphist bench`, how it is shown, and what must show

`python -m dphist_bench.peers DIR` makes the environments; `DPHIST_PEERS=DIR dphist bench run peers --workers 1`
measures. Without them a peer that is importable here is measured here, and the others are reported as skipped.
"""
