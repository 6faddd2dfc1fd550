"""The open data directory: its lock, its syncs, and the space kept for a full disk."""
