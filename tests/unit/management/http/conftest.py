"""A broker whose HTTP API tests ask."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.unit.management.http.asking import Api, running_api


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    """The HTTP API of a broker that the tests of one file share."""
    with running_api() as running:
        yield running
