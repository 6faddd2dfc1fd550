"""AMQP 0-8, 0-9, 0-9-1 and the transitional 0-10, without I/O."""
