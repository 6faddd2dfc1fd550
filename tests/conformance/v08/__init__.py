"""The rules of AMQP 0-8, on the wire."""
