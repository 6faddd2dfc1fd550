"""Backups of a data directory: which bytes belong to one, and the file that lists them."""
