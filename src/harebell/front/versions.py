"""Which connection serves which version of AMQP.

A version is served when it stands here: the arrival of a peer (`harebell.front.arrival`) looks its
header's version up and goes on with what the opener makes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harebell.front.link import Link
from harebell.front.session010 import Connection as Connection010
from harebell.front.session09 import Connection
from harebell.front.session09.amqp_0_9_1 import PROFILE_0_9_1

OPENERS: dict[str, Callable[..., Link]] = {
    "0-9-1": partial(Connection, profile=PROFILE_0_9_1),
    "0-10": Connection010,
    # Its clients are content with 0-9-1, as RabbitMQ found.
    "0-9": partial(Connection, profile=PROFILE_0_9_1),
}
"""Version -> the connection, called with broker, users, hub, settings, peer and now."""
