"""A lease group beside the offset of a checkpoint: what the broker has of its claims."""

from __future__ import annotations

import pytest

from harebell.client.protocol.leases import Lease
from harebell.spark.reading.leased.group import Group, Standing
from harebell.spark.reading.offsets import ClaimOffset
from harebell.wire.v09.lease import ClaimInfo

_FIRST = "a" * 16
_SECOND = "b" * 16
_ONE_HISTORY = f"{_FIRST}:1"
_RESTORED_AFTER_4 = f"{_FIRST}:1 {_SECOND}:5"


def group(committed: int, newest: int, eras: str = _ONE_HISTORY) -> Group:
    """A group whose claims after the committed ones are open."""
    claims = tuple(ClaimInfo(number, 1, 0, 0, 1) for number in range(committed + 1, newest + 1))
    return Group("group", Lease(1, "log", committed, newest, 0, 0, claims), eras, 1)


def offset(claim: int, eras: str = _ONE_HISTORY, generation: str = "log") -> ClaimOffset:
    return ClaimOffset(generation, "group", claim, eras)


@pytest.mark.parametrize(
    ("held", "at", "standing", "continues"),
    [
        (group(3, 7), offset(5, generation="old"), Standing.ANOTHER_LOG, 3),
        (group(3, 7), offset(5), Standing.SAME, 5),
        (group(5, 7), offset(5), Standing.SAME, 5),
        (group(6, 7), offset(5), Standing.CHECKPOINT_IS_OLDER, 5),
        (group(3, 7, _RESTORED_AFTER_4), offset(6), Standing.BROKER_IS_OLDER, 4),
        (group(3, 4, _RESTORED_AFTER_4), offset(6), Standing.BROKER_IS_OLDER, 4),
        (group(1, 2, ""), offset(6, ""), Standing.GROUP_IS_NEW, 1),
        (group(1, 2), offset(6, ""), Standing.GROUP_IS_NEW, 1),
        (group(3, 4), offset(6), Standing.CHANGED, 6),
    ],
)
def test_a_query_goes_on_where_the_broker_and_the_checkpoint_have_the_same_claims(
    held: Group, at: ClaimOffset, standing: Standing, continues: int
) -> None:
    compared = held.compare(at)
    assert compared.standing is standing
    assert compared.continuation.claim == continues


def test_claims_that_a_restored_broker_has_made_as_others_are_missing() -> None:
    assert group(3, 7, _RESTORED_AFTER_4).compare(offset(6)).missing == [range(5, 7)]


def test_a_claim_that_went_back_to_the_queue_is_missing() -> None:
    held = group(3, 7)
    del held.claims[5]
    assert held.compare(offset(6)).missing == [range(5, 6)]


def test_committed_claims_are_not_open() -> None:
    held = group(3, 7)
    held.record_commit(5)
    assert held.after(0) == [6, 7]
    assert held.committed == 5
