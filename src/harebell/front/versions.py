"""Which connection serves which version of AMQP.

A version is served when it stands here: the arrival of a peer (`harebell.front.arrival`) looks its
header's version up and goes on with what the opener makes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harebell.front.link import Link
from harebell.front.session010 import Connection as Connection010
from harebell.front.session010t import TransitionalConnection
from harebell.front.session010t.profile import PROFILE_0_10T
from harebell.front.session09 import Connection
from harebell.front.session09.amqp_0_8 import PROFILE_0_8
from harebell.front.session09.amqp_0_9 import PROFILE_0_9
from harebell.front.session09.amqp_0_9_1 import PROFILE_0_9_1

OPENERS: dict[str, Callable[..., Link]] = {
    "0-9-1": partial(Connection, profile=PROFILE_0_9_1),
    "0-9": partial(Connection, profile=PROFILE_0_9),
    "0-8": partial(Connection, profile=PROFILE_0_8),
    "0-10": Connection010,
    "0-10t": partial(TransitionalConnection, profile=PROFILE_0_10T),
}
"""Version -> the connection, called with broker, users, hub, settings, peer and now."""
