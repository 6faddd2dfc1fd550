"""What every test run has: the ledger, counts, examples, an order, and pytester for their tests."""

pytest_plugins = [
    "tests.conformance.ledger",
    "tests.counts",
    "tests.examples",
    "tests.spreading",
    "tests.workers",
    "pytester",
]
