"""Where the rows of a pipeline go, one kind per file."""
