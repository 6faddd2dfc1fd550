"""What every run has: quick collection, ledger, counts, examples, patience, order, pytester."""

pytest_plugins = [
    "tests.collecting",
    "tests.conformance.ledger",
    "tests.counts",
    "tests.examples",
    "tests.patient_pika",
    "tests.spreading",
    "tests.workers",
    "pytester",
]
