"""Conformance with AMQP 0-10, frame by frame."""
