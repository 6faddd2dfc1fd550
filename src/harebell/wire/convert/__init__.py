"""Convert property lists between the protocol families.

These modules only process bytes. `harebell.front.convert` uses them for messages to peers of
another family, and the client for its own.
"""
