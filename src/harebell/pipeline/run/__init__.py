"""Run a pipeline: Spark queries, their state and their metrics."""
