"""Read the rows of a partition in a task, and what becomes of their columns."""
