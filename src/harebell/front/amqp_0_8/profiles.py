"""The profiles of 0-8, in its published layout and in Qpid's, and of 0-9, with later additions."""

from __future__ import annotations

from typing import Any

from harebell.front.amqp_0_8 import basic as older_basic
from harebell.front.amqp_0_8 import dispatch as older
from harebell.front.amqp_0_9_1 import handshake
from harebell.front.amqp_0_9_1.legacy_channel import LegacyChannel
from harebell.front.amqp_0_9_1.legacy_consumer import LegacyConsumer
from harebell.front.amqp_0_9_1.profile import Profile
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.spec import ProtocolSpec


def _profile(spec: ProtocolSpec, handlers: dict[type, older.Handler], **own: Any) -> Profile:
    """Return what both versions have, and what is a version's own."""
    return Profile(
        spec=spec,
        states=older.states_of(spec),
        connection_handlers=older.handlers_of(spec, handshake.HANDLERS),
        handlers=older.handlers_of(spec, handlers),
        errors=older.ERRORS,
        start=handshake.start,
        channel=LegacyChannel,
        consumer=LegacyConsumer,
        plain=True,
        tickets=True,
        **own,
    )


PROFILE_0_8 = _profile(
    AMQP_0_8,
    older.HANDLERS | older_basic.HANDLERS_0_8,
    version="0-8",
    major=8,
    minor=0,
    # connection.blocked and the rest belong to 0-9-1: 0-8 has no numbers for them.
    capable=False,
)
PROFILE_0_9 = _profile(
    AMQP_0_9, older.HANDLERS, version="0-9", major=0, minor=9, echoed=frozenset(b"ldV")
)
