"""Qpid's Python client of 2016, and its tests of brokers: the living words of AMQP 0-10."""
