"""The control socket: the command line asks a running broker over it."""
