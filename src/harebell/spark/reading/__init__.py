"""Read queues: the calls of Spark, and the ways to read a queue."""
