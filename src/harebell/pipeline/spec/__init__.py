"""What a pipeline file says: parse and check it without Spark."""
