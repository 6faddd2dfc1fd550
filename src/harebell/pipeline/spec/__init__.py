"""Parse and check a pipeline file without Spark."""
