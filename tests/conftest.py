"""What every test run has: the conformance ledger, counts, and pytester for tests of plugins.

Property tests try the same examples in every run of `make test`, so that a run says something of
the change and not of luck. `HYPOTHESIS_PROFILE=explore` tries new ones; `make soak` does so.
"""

import os

from hypothesis import settings

pytest_plugins = ["tests.conformance.ledger", "tests.counts", "pytester"]

settings.register_profile("same", derandomize=True)
settings.register_profile("explore", derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
