"""Rows of queues, exchanges, connections, channels and consumers, in RabbitMQ's shape."""
