"""The journal: what the store does to its data directory, as rows of a log elsewhere."""
