"""Tests of the storage in PostgreSQL, against real servers of the machine's own package."""
