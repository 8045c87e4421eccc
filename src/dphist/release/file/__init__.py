"""The release as one Parquet file: how it is laid out and written; `dphist.release.reading` reads it again."""
