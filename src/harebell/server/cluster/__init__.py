"""Several stores in one cluster: which broker serves a vhost, and how others reach it."""
