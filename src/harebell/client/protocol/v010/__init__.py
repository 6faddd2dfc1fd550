"""Final AMQP 0-10, without I/O."""
