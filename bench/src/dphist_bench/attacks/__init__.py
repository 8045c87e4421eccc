"""The strongest attacks we know on one claim, by whoever knows both neighbours and every law that is claimed.

`dphist.audit` looks from outside, as a reader of releases does. Here a gate knows both neighbours (`twin`), money is
bet against claims of ε, ρ and (ε, δ), and noise and choices are held against the laws that they claim (`law`).
"""
