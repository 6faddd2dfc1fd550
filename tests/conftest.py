"""What every test run has: the ledger, counts, examples, rooms, and pytester for their tests."""

pytest_plugins = [
    "tests.conformance.ledger",
    "tests.counts",
    "tests.examples",
    "tests.workers",
    "pytester",
]
