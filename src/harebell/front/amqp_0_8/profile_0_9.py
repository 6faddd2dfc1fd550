"""The profile of 0-9, with the additions of 0-9-1 and RabbitMQ."""

from __future__ import annotations

from harebell.front.amqp_0_8 import dispatch as older
from harebell.front.amqp_0_9_1 import handshake
from harebell.front.amqp_0_9_1.legacy_channel import LegacyChannel
from harebell.front.amqp_0_9_1.legacy_consumer import LegacyConsumer
from harebell.front.amqp_0_9_1.profile import Profile
from harebell.wire.v09.amqp_0_9 import AMQP_0_9

PROFILE_0_9 = Profile(
    version="0-9",
    major=0,
    minor=9,
    spec=AMQP_0_9,
    states=older.states_of(AMQP_0_9),
    connection_handlers=older.handlers_of(AMQP_0_9, handshake.HANDLERS),
    handlers=older.handlers_of(AMQP_0_9, older.HANDLERS),
    errors=older.ERRORS,
    start=handshake.start,
    channel=LegacyChannel,
    consumer=LegacyConsumer,
    plain=True,
    echoed=frozenset(b"ldV"),
    tickets=True,
)
