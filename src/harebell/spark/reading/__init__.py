"""Read queues: what Spark calls, and the ways a queue can be read."""
