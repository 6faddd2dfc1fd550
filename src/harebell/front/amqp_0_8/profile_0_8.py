"""The profile of 0-8, in its published layout and in Qpid's."""

from __future__ import annotations

from harebell.front.amqp_0_8 import basic as older_basic
from harebell.front.amqp_0_8 import dispatch as older
from harebell.front.amqp_0_9_1 import handshake
from harebell.front.amqp_0_9_1.legacy_channel import LegacyChannel
from harebell.front.amqp_0_9_1.legacy_consumer import LegacyConsumer
from harebell.front.amqp_0_9_1.profile import Profile
from harebell.wire.v09.amqp_0_8 import AMQP_0_8

PROFILE_0_8 = Profile(
    version="0-8",
    major=8,
    minor=0,
    spec=AMQP_0_8,
    states=older.states_of(AMQP_0_8),
    connection_handlers=older.handlers_of(AMQP_0_8, handshake.HANDLERS),
    handlers=older.handlers_of(AMQP_0_8, older.HANDLERS | older_basic.HANDLERS_0_8),
    errors=older.ERRORS,
    start=handshake.start,
    channel=LegacyChannel,
    consumer=LegacyConsumer,
    # connection.blocked and the rest belong to 0-9-1: 0-8 has no numbers for them.
    capable=False,
    plain=True,
    tickets=True,
)
