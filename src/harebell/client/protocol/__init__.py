"""The client without I/O: octets and time in, octets and answers out.

Nothing here opens a socket, reads a clock or starts a thread. `harebell.client.aio` and
`harebell.client.blocking` do that.
"""
