"""The client without I/O: bytes and time as input, bytes and answers as output.

Nothing here opens a socket, reads a clock or starts a thread. `harebell.client.aio` and
`harebell.client.blocking` do that.
"""
