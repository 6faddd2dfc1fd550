"""What every test run has: the conformance ledger, and pytester for the tests of pytest plugins."""

pytest_plugins = ["tests.conformance.ledger", "pytester"]
