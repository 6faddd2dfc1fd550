"""Collection without the garbage collector, which would take as long as collection itself.

Every worker collects every test: hundreds of modules and tens of thousands of tests, and nearly
everything that is made stays until the end of the run. The collector would go through all of it
again and again, in collection and in every test after it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect tests with the collector at rest; from then on it looks at what is newer only."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
