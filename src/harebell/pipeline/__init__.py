"""Pipelines: described in one file, checked without Spark and run on it."""
