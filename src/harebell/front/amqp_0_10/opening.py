"""How a connection of AMQP 0-10 is made."""

from __future__ import annotations

from functools import partial

from harebell.front.amqp_0_10.connection import Connection, Handlers
from harebell.front.amqp_0_10.handshake import start
from harebell.front.amqp_0_10.handshake import take as take_connection_control
from harebell.front.amqp_0_10.intake import Intake
from harebell.front.amqp_0_10.session_attach import serve_control as take_session_control

_HANDLERS = Handlers(start, take_connection_control, take_session_control, Intake)
open_connection = partial(Connection, handlers=_HANDLERS)
"""Makes a connection; `harebell.front.versions` has the arguments."""
