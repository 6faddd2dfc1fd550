"""How a connection of AMQP 1.0 is made."""

from __future__ import annotations

from functools import partial

from harebell.front.amqp_1_0.closing import close_session, end_link
from harebell.front.amqp_1_0.connection import Connection, Handlers
from harebell.front.amqp_1_0.handshake import own_open
from harebell.front.amqp_1_0.intake import Intake
from harebell.front.amqp_1_0.login import begin, refuse
from harebell.front.amqp_1_0.termini import expire_with_connection, forget

_HANDLERS = Handlers(
    begin, refuse, own_open, Intake, close_session, end_link, forget, expire_with_connection
)

open_connection = partial(Connection, handlers=_HANDLERS)
"""Makes a connection; `harebell.front.versions` has the arguments."""
