"""Tables that stay where they are: `postgres` and `spark` are spoken to in SQL; SQLite's are read through `lite`.

`opening` finds out which; `expressions` refuses plans in which one person's rows would move another's, and `missing`
sees to it that NaN does not either.
"""
