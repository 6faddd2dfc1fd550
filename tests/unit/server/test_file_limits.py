"""The store has its share of what the process may have open."""

from __future__ import annotations

import resource

import pytest

from harebell.base.limits import OPEN_FILES, OTHER_FILES
from harebell.server.file_limits import max_open, shares


@pytest.mark.parametrize("limit", [100, 256, 1024, 20_000, 1 << 20])
def test_all_shares_fit_into_what_there_is(limit: int) -> None:
    store, connections = shares(limit)
    assert 2 * store + connections + OTHER_FILES == limit
    assert 8 <= store <= OPEN_FILES
    assert connections >= limit // 5


def test_where_there_is_next_to_nothing_there_is_a_little_of_each() -> None:
    assert shares(10) == (8, 1)


def test_the_limit_is_that_of_the_process() -> None:
    assert max_open() == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
