"""What operators and their programs use: HTTP API, web interface, control socket, metrics.

Backends, which decide who may log in, are here too.
"""
