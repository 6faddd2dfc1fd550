"""Where tests that wait for processes and disks stand among those that compute.

With `--dist worksteal` each worker begins with one piece of the order of collection. Left alone,
the tests of robustness, which mostly wait, would all be the first worker's, and the processors idle
while it works through them:

    collected    wait wait wait wait  calc calc calc calc calc calc calc calc
    two workers  wait calc calc wait calc calc │ wait calc calc wait calc calc

So every piece gets its share, at even distances, and begins with what may take long: nothing that
is long should begin when everything else is done. Only the order changes. Tests that share what
their module has set up stay together, for pytest ends it when another module's test comes between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import groupby

import pytest

WAITING = "tests/robustness/"

Together = list[pytest.Item]
"""Tests with nothing between them."""


# After those have gone that this run leaves out, for pieces are told by their number of tests.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Spread what waits, where there are workers."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        waiting = [item for item in items if item.nodeid.startswith(WAITING)]
        others = [item for item in items if not item.nodeid.startswith(WAITING)]
        items[:] = spread(waiting, others, workers)


def spread(waiting: list[pytest.Item], others: list[pytest.Item], workers: int) -> Together:
    """The tests in so many pieces, in each of which those that wait are spread evenly."""
    # The order stays what it was among those that may take equally long.
    long_first = sorted(_kept_together(waiting), key=_patience, reverse=True)
    among = deque(_kept_together(others))
    found: Together = []
    for piece in range(workers):
        few = long_first[piece::workers]
        end = (len(waiting) + len(others)) * (piece + 1) // workers - sum(map(len, few))
        many: list[Together] = []
        while among and len(found) + sum(map(len, many)) < end:
            many.append(among.popleft())
        for tests in _evenly(few, many):
            found += tests
    for tests in among:
        found += tests
    return found


def _evenly(few: list[Together], many: list[Together]) -> Iterable[Together]:
    """The few among the many; the first of all is one of the few."""
    before = 0
    for number, tests in enumerate(few):
        here = len(many) * number // len(few)
        yield from many[before:here]
        yield tests
        before = here
    yield from many[before:]


def _kept_together(items: list[pytest.Item]) -> list[Together]:
    """Each test by itself, but those of a module that sets something up for all of them."""
    found: list[Together] = []
    for _, group in groupby(items, key=lambda item: item.nodeid.partition("::")[0]):
        tests = list(group)
        found += [tests] if any(map(_shares, tests)) else [[test] for test in tests]
    return found


def _shares(item: pytest.Item) -> bool:
    info = getattr(item, "_fixtureinfo", None)
    fixtures = info.name2fixturedefs.values() if info is not None else ()
    return any(each[-1].scope in ("module", "class", "package") for each in fixtures if each)


def _patience(tests: Together) -> float:
    """How many seconds they may take, as far as they say so."""
    marks = (test.get_closest_marker("timeout") for test in tests)
    return max((float(mark.args[0]) for mark in marks if mark and mark.args), default=0.0)
