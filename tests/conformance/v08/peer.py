"""Peers of 0-8 and 0-9, driven frame by frame: see `tests.conformance.raw`."""

from __future__ import annotations

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.domains import ABSENT
from tests.conformance import raw

QPID = {"product": "qpid python client"}


class Peer8(raw.Peer):
    """A peer of 0-8 in its published layout."""

    SPEC = AMQP_0_8
    GREETING = b"AMQP\x01\x01\x08\x00"

    def ticket(self, *rights: str, realm: str = "/data", channel: int = 1) -> int:
        """A ticket with these rights."""
        wanted = dict.fromkeys(("passive", "active", "write", "read"), False)
        wanted |= dict.fromkeys(rights, True)
        granted: m.AccessRequestOk = self.ask(m.AccessRequest(realm, **wanted), channel)
        return granted.ticket

    def consume(self, queue: str, channel: int = 1, **options: object) -> str:
        """Start a consumer and return its tag; without the arguments that only Qpid has."""
        return super().consume(queue, channel, **{"arguments": ABSENT} | options)


class Peer9(Peer8):
    """A peer of 0-9."""

    SPEC = AMQP_0_9
    GREETING = b"AMQP\x01\x01\x00\x09"
