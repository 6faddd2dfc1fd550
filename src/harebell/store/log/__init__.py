"""Logs of queues: segments, records, and what readers keep in memory."""
