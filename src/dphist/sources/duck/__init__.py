"""DuckDB, which counts files and data frames on this machine: `duck` speaks to it, within the machine's `allowance`."""
