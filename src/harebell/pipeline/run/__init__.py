"""Run a pipeline: queries of Spark, their state and their metrics."""
