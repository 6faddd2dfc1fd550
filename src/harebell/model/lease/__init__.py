"""Leases: named groups that durably claim messages of a queue."""
