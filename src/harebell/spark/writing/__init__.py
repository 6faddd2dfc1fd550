"""Write rows to the broker: at least once, or exactly once."""
