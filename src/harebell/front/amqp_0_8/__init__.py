"""AMQP 0-8 and 0-9: the classes that differ from 0-9-1."""
