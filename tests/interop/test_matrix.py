"""Whatever version a message is published in, a consumer of any other gets all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.matrix import MODES, SIZES, SPOKEN, Matrix, Outcome, matrix, table
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


@pytest.mark.parametrize("consumer", SPOKEN)
@pytest.mark.parametrize("publisher", SPOKEN)
def test_nothing_is_lost_between_two_versions(found: Matrix, publisher: str, consumer: str) -> None:
    outcomes = [found.exchange(publisher, consumer, size, mode) for size in SIZES for mode in MODES]
    assert not any(outcome.lost for outcome in outcomes), table(outcomes, [publisher, consumer])


def test_the_table_counts_what_came_whole_and_names_what_did_not() -> None:
    shown = table(
        [
            Outcome("0-8", "0-10", "small", "transient", ()),
            Outcome("0-8", "0-10", "empty", "transient", ("priority", "header a")),
        ],
        ["0-8", "0-10"],
    )
    assert "0-8 |     0/0 |     1/2" in shown
    assert shown.endswith("0-8 to 0-10, empty, transient: priority, header a")
