"""Message orders: which message of a queue is next."""
