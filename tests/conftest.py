"""What every test run has: the conformance ledger, counts, and pytester for tests of plugins."""

pytest_plugins = ["tests.conformance.ledger", "tests.counts", "tests.examples", "pytester"]
