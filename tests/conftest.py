"""What every run has: quick collection, the ledger, counts, examples, an order, and pytester."""

pytest_plugins = [
    "tests.collecting",
    "tests.conformance.ledger",
    "tests.counts",
    "tests.examples",
    "tests.spreading",
    "tests.workers",
    "pytester",
]
