"""The nouns: what is public (domain), counted (histogram), protected (unit) and asked (workload)."""
