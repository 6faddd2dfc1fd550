"""The control socket, by which the command line talks to a running broker."""
