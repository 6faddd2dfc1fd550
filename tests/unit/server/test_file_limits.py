"""The store has its share of what the process may have open."""

from __future__ import annotations

import resource

import pytest

from harebell.server.file_limits import max_open, shares
from harebell.server.limits import HTTP_CONNECTIONS, OTHER_FILES
from harebell.store.limits import OPEN_FILES


@pytest.mark.parametrize("limit", [100, 256, 1024, 20_000, 1 << 20])
def test_all_shares_fit_into_what_there_is(limit: int) -> None:
    store, connections, http = shares(limit)
    assert 2 * store + connections + 2 * http + OTHER_FILES == limit
    assert 1 <= http <= HTTP_CONNECTIONS
    assert http <= connections
    assert 8 <= store <= OPEN_FILES
    assert connections >= limit // 8


def test_where_there_is_next_to_nothing_there_is_a_little_of_each() -> None:
    assert shares(10) == (8, 1, 1)


def test_the_limit_is_that_of_the_process() -> None:
    assert max_open() == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
