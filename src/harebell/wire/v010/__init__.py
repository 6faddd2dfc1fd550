"""AMQP 0-10 as published in 2008: its own framing, type system and session layer."""
