"""The nouns: what is public (domain), counted (histogram), protected (unit), asked (workload) and spent (budget).

Values without a will: whoever has one can read it, and nothing here opens a gate. Every floor above imports them;
mechanisms and inference all but the two that hold counts (`histogram`, `coded`).
"""
