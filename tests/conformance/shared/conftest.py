"""Peers of 0-8, 0-9, 0-9-1 and transitional 0-10: a test that takes one runs in every version."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.conformance.conftest import delete_declared
from tests.conformance.peers import peers_of
from tests.conformance.shared.versions import VERSIONS, Connect
from tests.conformance.sites import Site


@pytest.fixture(params=VERSIONS)
def connect(request: pytest.FixtureRequest, site: Site) -> Iterator[Connect]:
    """Makes peers of one version that have sent nothing yet."""
    yield from peers_of(site, VERSIONS[request.param], partial(delete_declared, site))
