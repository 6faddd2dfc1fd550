"""Sockets: listeners, TLS, and one protocol object for each connection."""
