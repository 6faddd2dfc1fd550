"""The classes `file` and `stream`: files and packets, in every version that has them.

This package is independent of versions. A channel that serves these classes has what `Channel` of
0-9-1 has: a number, a connection that sends methods, unacknowledged deliveries and consumers.
"""
