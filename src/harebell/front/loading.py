"""Import the code of a version of AMQP in parts, so that other connections are not kept waiting.

    the header of a version arrives     a part in each turn, then its connection is made
    the first connection is made        the code of queues, in further turns, before it is needed

`harebell.base.parts` says what a part is.
"""

from __future__ import annotations

from harebell.wire import VERSION_1_0

_FAMILY_0_9 = (
    "harebell.front.operations.publishing_channel",
    "harebell.front.common.login",
    "harebell.wire.v09.extensions",
    "harebell.wire.v09.amqp_0_9_1",
    "harebell.front.amqp_0_9_1.connection",
    "harebell.front.amqp_0_9_1.channel",
    "harebell.front.amqp_0_9_1.queue",
    "harebell.front.amqp_0_9_1.basic",
    "harebell.front.amqp_0_9_1.profile",
)
_OTHER_CLASSES = (
    "harebell.wire.v09.methods_older",
    "harebell.front.file_stream.publishing",
    "harebell.front.file_stream.consuming",
    "harebell.front.file_stream.classes",
    "harebell.model.xa.association",
)
_0_8 = (
    "harebell.front.amqp_0_8.dtx",
    "harebell.front.amqp_0_8.dispatch",
    "harebell.front.amqp_0_8.profiles",
)
_QUEUE = (
    "harebell.model.queue.order.keyed",
    "harebell.model.queue.order.last_value",
    "harebell.model.queue.features.queue_internals",
    "harebell.model.queue.features.browse",
    "harebell.model.queue.queue",
)

PARTS: dict[str, tuple[str, ...]] = {
    "0-9-1": (*_FAMILY_0_9, "harebell.front.amqp_0_9_1.profile_0_9_1"),
    "0-9": (*_FAMILY_0_9, *_QUEUE, *_OTHER_CLASSES, *_0_8),
    "0-8": (*_FAMILY_0_9, *_QUEUE, *_OTHER_CLASSES, *_0_8),
    "0-10t": (
        *(*_FAMILY_0_9, *_QUEUE, *_OTHER_CLASSES),
        "harebell.wire.v09.methods_transitional",
        "harebell.front.amqp_0_10_transitional.channel",
        "harebell.front.amqp_0_10_transitional.basic",
        "harebell.front.amqp_0_10_transitional.dispatch",
        "harebell.front.amqp_0_10_transitional.profile",
    ),
    "0-10": (
        "harebell.front.operations.publishing_channel",
        "harebell.front.common.login",
        "harebell.wire.v09.extensions",
        "harebell.wire.v09.amqp_0_9_1",
        *_QUEUE,
        *_OTHER_CLASSES,
        "harebell.wire.v010.types",
        "harebell.wire.v010.amqp_0_10",
        "harebell.wire.v010.commands",
        "harebell.wire.convert.final",
        "harebell.front.operations.declare",
        "harebell.front.amqp_0_10.connection",
        "harebell.front.amqp_0_10.session",
        "harebell.front.amqp_0_10.exchange",
        "harebell.front.amqp_0_10.message",
        "harebell.front.amqp_0_10.dispatch",
        "harebell.front.amqp_0_10.opening",
    ),
    VERSION_1_0: (
        "harebell.front.operations.publishing_channel",
        "harebell.front.common.login",
        "harebell.wire.v1.composites",
        "harebell.front.amqp_1_0.connection",
        "harebell.front.amqp_1_0.session",
        "harebell.front.amqp_1_0.receiving",
        "harebell.model.filter.condition",
        "harebell.model.queue.stream",
        "harebell.front.operations.declare",
        "harebell.front.amqp_1_0.management.pair",
        "harebell.front.amqp_1_0.attaching",
        "harebell.front.amqp_1_0.opening",
    ),
}
"""Version -> modules that are imported before its first connection, in this order."""

QUEUES = (*_QUEUE, "harebell.model.queue.factory", "harebell.model.lease.leases")
"""What the first queue needs."""

IMPORTED: set[str] = set()
"""The versions of which every part was imported."""
