"""`harebell sql`: SQL statements over queues and tables."""
