"""A naive reference broker, and the real one compared with it."""
