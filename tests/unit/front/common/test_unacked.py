"""An unacknowledged delivery gives its consumer credit back, whichever way it ends."""

from __future__ import annotations

import pytest

from harebell.front.common.unacked import Unacked
from tests.unit.model.things import Taker, message, queue


@pytest.mark.parametrize("end", ["settle", "requeue"])
@pytest.mark.parametrize("consumed", [True, False], ids=["consumed", "got"])
def test_credit_and_message_go_where_they_belong(end: str, consumed: bool) -> None:
    where = queue()
    where.publish(message(b"x"))
    found = where.get()
    assert found is not None
    taker = Taker(where)
    taker.unacked = 1
    entry = Unacked(where, taker if consumed else None, found[1], 7)
    assert (entry.tag, entry.queue) == (7, where)
    getattr(entry, end)()
    assert taker.unacked == (0 if consumed else 1)
    assert where.unacked == 0
    assert where.ready_count() == (1 if end == "requeue" else 0)
