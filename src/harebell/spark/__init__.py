"""Queues as a Spark source: `spark.readStream.format("harebell")`."""
