"""The published snapshot: Parquet files that are written and swapped in, and their readers."""
