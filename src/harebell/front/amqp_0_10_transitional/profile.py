"""The profile of transitional 0-10."""

from __future__ import annotations

from functools import partial

from harebell.front.amqp_0_9_1.connection_states import CONNECTION, ConnectionEvent, without
from harebell.front.amqp_0_9_1.profile import Profile
from harebell.front.amqp_0_10_transitional import frames, handshake
from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel
from harebell.front.amqp_0_10_transitional.consumer import TransitionalConsumer
from harebell.front.amqp_0_10_transitional.dispatch import HANDLERS
from harebell.front.amqp_0_10_transitional.layer import TransitionalLayer
from harebell.front.common.errors import Errors
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL
from harebell.wire.v09.reply_codes import NAMES_0_10T

PROFILE_0_10T = Profile(
    version="0-10t",
    major=0,
    minor=10,
    spec=AMQP_0_10_TRANSITIONAL,
    states=without(CONNECTION, [ConnectionEvent.UPDATE_SECRET]),
    connection_handlers=handshake.HANDLERS,
    handlers=HANDLERS,
    # The specification has no other code for a frame at the wrong time.
    errors=Errors(NAMES_0_10T, {505: (503, True)}),
    start=handshake.start,
    channel=TransitionalChannel,
    consumer=TransitionalConsumer,
    layer=partial(TransitionalLayer, take=frames.take),
)
