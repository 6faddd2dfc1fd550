"""What a connection makes the broker keep is counted, shown, and limited."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.admin.context import AdminContext
from harebell.admin.rows.connections import connection_row
from harebell.front.common import kept
from harebell.front.common.kept import footprint
from harebell.front.limits import KEPT_CHECK_SECONDS
from harebell.wire.v010 import commands as c
from harebell.wire.v09 import methods as m
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v010.raw import Peer010

LIMIT = 1_000_000
ARGUMENTS: dict[str, Any] = {"x": "y" * 50_000}


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> MemorySite:
    """A broker with a low limit, and small messages."""
    monkeypatch.setattr(kept, "CONNECTION_KEPT_BYTES", LIMIT)
    return MemorySite(message_max=1_000)


def _row(site: MemorySite, peer: Any) -> int:
    definitions: Any = None
    context = AdminContext(
        site.broker, site.users, site.registry, definitions, lambda: site.now, lambda *_: None
    )
    return connection_row(context, peer.wire.connection)["kept_bytes"]


def test_consumers_with_large_arguments_are_shown_and_end_their_connection(
    site: MemorySite,
) -> None:
    peer, other = Peer(site, site.connect()).open(), Peer(site, site.connect()).open()
    peer.queue("q")
    for number in range(LIMIT // 52_000):
        assert peer.ask(m.BasicConsume("q", f"c{number}", arguments=ARGUMENTS)).consumer_tag
        assert (number + 1) * 50_000 < _row(site, peer) < (number + 1) * 52_000
    for number in range(10):
        peer.send(m.BasicConsume("q", f"d{number}", arguments=ARGUMENTS, nowait=True))
    close = peer.expect(m.ConnectionClose, reply_code=506)
    assert "a connection may use 1000000 bytes of memory for consumers" in close.reply_text
    peer.send(m.ConnectionCloseOk())
    peer.expect_closed()
    assert other.queue("r") == "r"


def test_consumers_that_have_ended_do_not_count(site: MemorySite) -> None:
    peer = Peer(site, site.connect()).open()
    peer.queue("q")
    for _ in range(3 * LIMIT // 50_000):
        peer.ask(m.BasicConsume("q", "c", arguments=ARGUMENTS))
        peer.ask(m.BasicCancel("c"))
    assert _row(site, peer) == 0


def test_in_0_10_the_session_ends(site: MemorySite) -> None:
    peer = Peer010(site, site.connect()).open().attach()
    peer.send(c.QueueDeclare("q"), sync=True)
    peer.expect_completed(0)
    for number in range(2 * LIMIT // 50_000):
        peer.send(c.MessageSubscribe("q", f"c{number}", arguments={"x": "y" * 50_000}))
    text = "a connection may use 1000000 bytes"
    while (found := peer.maybe()) is not None:
        if isinstance(found.value, c.ExecutionException):
            assert text in (found.value.description or "")
            return
    raise AssertionError("nothing was refused")


def test_deliveries_that_are_never_acknowledged_end_their_connection(
    site: MemorySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "CONNECTION_KEPT_BYTES", 10_000)
    peer, other = Peer(site, site.connect()).open(), Peer(site, site.connect()).open()
    peer.queue("q")
    peer.ask(m.BasicConsume("q", "c"))
    for _ in range(300):
        other.publish("", "q", b"message")
    assert _row(site, peer) > 64 * 300
    site.pass_time(KEPT_CHECK_SECONDS + 1)
    text = "it makes the broker keep"
    assert any(text in line and level == "error" for level, line in site.log)
    while not peer.ended:
        frame = peer.next_frame("connection.close")
        if frame.kind == 1 and isinstance(
            method := peer.SPEC.decode(frame.payload), m.ConnectionClose
        ):
            assert method.reply_code == 320
            assert text in method.reply_text
            break
    assert site.broker.vhosts["/"].queues["q"].ready_count() == 300


def test_the_footprint_of_a_table_is_at_least_that_of_its_parts() -> None:
    assert footprint({"a": "b" * 1_000}) > 1_000
    assert footprint({"a": [1] * 1_000}) > 8_000
    assert footprint({str(number): {} for number in range(1_000)}) > 150_000
