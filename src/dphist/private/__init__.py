"""The trusted core: the only code that sees counts or entropy.

Read in this order: ``questions`` (what may be asked, and the promise a question makes), ``gate`` (who may ask,
and at what price), ``noise`` (how the answer is blurred), ``transcript`` and ``ledger`` (what is remembered).
"""
