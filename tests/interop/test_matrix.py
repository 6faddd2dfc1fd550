"""Whatever version a message is published in, a consumer of any other gets all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harebell.client.url import VERSIONS
from tests.interop.matrix import MODES, SIZES, Matrix, matrix, table
from tests.running import RunningBroker, running_broker


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    """One broker for all pairs."""
    with running_broker() as started:
        yield started


@pytest.fixture(scope="module")
def found(broker: RunningBroker) -> Iterator[Matrix]:
    """A channel in each version."""
    with matrix(broker.address()) as made:
        yield made


@pytest.mark.parametrize("consumer", VERSIONS)
@pytest.mark.parametrize("publisher", VERSIONS)
def test_nothing_is_lost_between_two_versions(found: Matrix, publisher: str, consumer: str) -> None:
    outcomes = [found.exchange(publisher, consumer, size, mode) for size in SIZES for mode in MODES]
    assert not any(outcome.lost for outcome in outcomes), table(outcomes, [publisher, consumer])
