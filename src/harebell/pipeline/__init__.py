"""Pipelines: what one file describes, checked without Spark and run on it."""
