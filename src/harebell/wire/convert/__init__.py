"""Property lists of one protocol family in the words of another.

These modules know octets alone. `harebell.front.convert` asks them for messages that peers of
another family get, and the client for its own.
"""
