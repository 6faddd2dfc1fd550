"""Test suites that the authors of clients wrote, run on Harebell and on RabbitMQ: `make interop`.

Nothing of theirs is kept here. The archives come from the package registries, are checked against
the hashes in the catalogue, and are unpacked below `build/`. Both brokers run one after the other
in a network of their own that has nothing but loopback, because some suites have port 5672 in them
and others would dial public hosts.
"""
