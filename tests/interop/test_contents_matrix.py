"""Whatever version a file or packet is published in, a consumer of any other gets all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.sites import SocketSite
from tests.interop.contents_matrix import KINDS, SIZES, VERSIONS, Contents
from tests.interop.matrix import table


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Contents]:
    """A broker for all pairs."""
    directory: Path = tmp_path_factory.mktemp("contents")
    site = SocketSite(directory)
    yield Contents(site)
    site.close()


@pytest.mark.parametrize("consumer", VERSIONS)
@pytest.mark.parametrize("publisher", VERSIONS)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_it_is_lost_between_two_versions(
    found: Contents, kind: str, publisher: str, consumer: str
) -> None:
    outcomes = [found.exchange(kind, publisher, consumer, size) for size in SIZES]
    assert not any(outcome.lost for outcome in outcomes), table(outcomes, [publisher, consumer])
