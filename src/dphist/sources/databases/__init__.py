"""Tables that stay where they are: `postgres` and `spark` are spoken to in SQL (`remote`), SQLite through `ibis_table`.

`opening` finds out which; `expressions` refuses plans in which one person's rows would move another's, `compared` and
`missing` see to it that equality and NaN do not either.
"""
