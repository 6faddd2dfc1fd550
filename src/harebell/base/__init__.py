"""Errors, limits, the message, and the interfaces between the layers."""
