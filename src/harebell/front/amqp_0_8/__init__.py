"""AMQP 0-8 and 0-9: what their classes do beside those of 0-9-1."""
