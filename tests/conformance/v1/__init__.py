"""Conformance tests of AMQP 1.0."""
