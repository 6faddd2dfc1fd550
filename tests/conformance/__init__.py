"""Conformance with the AMQP specifications, rule by rule."""
