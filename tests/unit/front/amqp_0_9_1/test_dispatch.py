"""Every method that a client may send on an open channel has a function that serves it."""

from __future__ import annotations

from harebell.front.amqp_0_9_1.dispatch import HANDLERS
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.extensions import FIRST_CLASS
from harebell.wire.v09.methods import ChannelCloseOk, ChannelFlowOk, ChannelOpen


def test_every_method_from_clients_is_served_but_for_those_of_the_connection() -> None:
    served = {kind.NAME for kind in HANDLERS}
    wanted = {
        spec.name
        for spec in AMQP_0_9_1.methods
        if spec.from_client
        and spec.class_id < FIRST_CLASS
        and not spec.name.startswith("connection.")
    }
    # RabbitMQ takes no answers on an open channel: nothing was asked.
    answers = {ChannelFlowOk.NAME, ChannelCloseOk.NAME}
    assert wanted - {ChannelOpen.NAME} - served == answers
