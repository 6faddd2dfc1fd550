"""Users that keep a broker busy: loads for `bench.fairness`, one process each.

A load is a generator function. What it does before its `yield` prepares it, and is not measured;
what it does behind that is, until the time is over. Each asks for nothing that the protocol does
not allow.
"""
