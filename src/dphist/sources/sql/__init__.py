"""Counting in SQL as DuckDB, PostgreSQL and Spark all run it: its `words`, and the `statements` made of them."""
