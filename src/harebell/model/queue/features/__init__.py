"""The optional parts of a queue."""
