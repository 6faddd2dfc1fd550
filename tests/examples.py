"""Property tests try the same examples in every run of `make test`.

So a run says something of the change and not of luck. `HYPOTHESIS_PROFILE=explore` tries new ones;
`make soak` does so. No example is given up because a machine is slow.
"""

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("same", _PATIENT, derandomize=True)
settings.register_profile("explore", _PATIENT, derandomize=False)

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")
settings.load_profile(PROFILE)

if PROFILE == "same":
    # Hypothesis likes the constants of the modules that are loaded, and which are depends on the
    # tests that ran before in the same process.
    providers._get_local_constants = providers.Constants  # type: ignore[attr-defined]
