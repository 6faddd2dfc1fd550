"""Backups of a running broker: where they go, the thread that makes them, and restoring one."""
