"""Tables of few attributes out of very many: which residuals and ranges are worth what, and models fitted to them.

For `residuals` and `mixture`, and for `choosing`, which asks what they are expected to be off by.
"""
