"""Files: a record is cut out of the text by us (`lines`, `delimited`, `objects`), and DuckDB computes with it.

Parquet is DuckDB's to read, each file by its own types (`parquet`).
"""
