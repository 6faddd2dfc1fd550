"""The profile of 0-9-1, with the extensions of RabbitMQ and Harebell."""

from __future__ import annotations

from harebell.front.amqp_0_9_1 import extensions, handshake
from harebell.front.amqp_0_9_1.channel import Channel
from harebell.front.amqp_0_9_1.connection_states import CONNECTION
from harebell.front.amqp_0_9_1.consumer import ChannelConsumer
from harebell.front.amqp_0_9_1.dispatch import HANDLERS
from harebell.front.amqp_0_9_1.profile import Profile
from harebell.front.common.errors import Errors
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.extensions import VERSIONS
from harebell.wire.v09.reply_codes import NAMES

PROFILE_0_9_1 = Profile(
    version="0-9-1",
    major=0,
    minor=9,
    spec=AMQP_0_9_1,
    states=CONNECTION,
    connection_handlers=handshake.HANDLERS,
    handlers=HANDLERS | extensions.HANDLERS,
    errors=Errors(NAMES),
    start=handshake.start,
    channel=Channel,
    consumer=ChannelConsumer,
    extended=True,
    extensions=VERSIONS,
)
