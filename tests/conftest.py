"""What every run has: collection, ledger, counts, examples, loggers, patience, order, pytester."""

pytest_plugins = [
    "tests.collecting",
    "tests.conformance.ledger",
    "tests.counts",
    "tests.examples",
    "tests.heard",
    "tests.patient_pika",
    "tests.slow_peers",
    "tests.spreading",
    "tests.workers",
    "pytester",
]
