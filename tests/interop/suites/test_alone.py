"""Suites that only Harebell can run, each in a network of its own."""

from __future__ import annotations

import pytest

from tests.interop.suites.__main__ import measure
from tests.interop.suites.catalogue import ALONE, Suite
from tests.interop.suites.fetch import fetch

_TESTS = {"libqpid-proton11-dev-examples": 15}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("suite", ALONE, ids=lambda suite: suite.name)
def test_every_test_of_a_suite_passes(suite: Suite) -> None:
    fetch(suite)
    found = measure("harebell", [suite])[suite.label]
    assert [name for name, passed in found.items() if not passed] == []
    assert len(found) == _TESTS[suite.name]
