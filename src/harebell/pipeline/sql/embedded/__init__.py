"""The embedded engine of `harebell sql`: DuckDB over Arrow batches, without Java."""
