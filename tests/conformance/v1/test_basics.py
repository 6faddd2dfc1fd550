"""Publish and consume."""

from __future__ import annotations

from harebell.wire.v1 import composites as c
from harebell.wire.v1.sections import data_section
from tests.conformance.v1.raw import Peer1


def test_a_message_goes_from_one_link_to_another(queue: str, peer1: Peer1) -> None:
    peer1.attach_sender(f"/queues/{queue}")
    number = peer1.transfer(0, b"hello")
    peer1.expect(c.Disposition, role=True, first=number, settled=True, state=c.Accepted())
    peer1.attach_receiver(f"/queues/{queue}", credit=10)
    found = peer1.expect_transfer(handle=1, delivery_id=0, settled=False)
    assert found.payload.endswith(data_section(b"hello"))
    peer1.send(c.Disposition(True, 0, settled=True, state=c.Accepted()))
    peer1.quiet()
