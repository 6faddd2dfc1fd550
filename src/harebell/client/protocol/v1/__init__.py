"""AMQP 1.0, without I/O."""
