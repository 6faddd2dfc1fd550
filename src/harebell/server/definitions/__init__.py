"""Definitions in RabbitMQ's JSON: what is declared in a broker, carried to another one.

`entries` says what stands in the document, `outward` writes one, `inward` takes one in, and `place`
is the broker that they work on.
"""
