"""The whole broker in memory, simulated from a seed."""
