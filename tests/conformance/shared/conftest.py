"""Peers of 0-8, 0-9, 0-9-1 and transitional 0-10: a test that takes one runs in every version."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.conformance.conftest import delete_declared
from tests.conformance.peers import peers_of
from tests.conformance.shared.versions import VERSIONS, Connect
from tests.conformance.sites import Site


@pytest.fixture(params=VERSIONS)
def connect(request: pytest.FixtureRequest, site: Site) -> Iterator[Connect]:
    """Makes peers of one version that have sent nothing yet."""
    yield from peers_of(site, VERSIONS[request.param], partial(delete_declared, site))


@pytest.fixture
def peer(connect: Connect) -> Any:
    """An open connection with channel 1 open."""
    return connect().open()


@pytest.fixture
def name() -> str:
    """A name that no other test has: the broker behind the socket is shared."""
    return f"t-{uuid.uuid4().hex[:12]}"
