"""AMQP 1.0: its type system, frames, performatives and message sections."""
