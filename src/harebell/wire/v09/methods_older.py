"""Methods that 0-8 and 0-9 have and 0-9-1 has not; see `harebell.wire.v09.methods`.

Some are those of the published documents, the others those that Qpid's clients and brokers of the
time had beside them: exchange.bound, and a basic.recover that is answered.
"""

from __future__ import annotations

from harebell.wire.v09.method import Method, Table

# --- channel, class 20 --------------------------------------------------------------------------


class ChannelAlert(Method):
    """Warn of an error that does not close the channel (0-8)."""

    reply_code: int = 0
    reply_text: str = ""
    details: Table = {}


class ChannelResume(Method):
    """Resume a channel of a connection that broke (0-9)."""

    channel_id: bytes = b""


class ChannelPing(Method):
    """Ask for a pong (0-9)."""


class ChannelPong(Method):
    """Answer a ping (0-9)."""


class ChannelOk(Method):
    """The answer to resume, ping and pong (0-9)."""


# --- exchange, class 40 -------------------------------------------------------------------------


class ExchangeBound(Method):
    """Ask whether an exchange has a binding, with the given queue and key if any (Qpid)."""

    exchange: str = ""
    routing_key: str = ""
    queue: str = ""


class ExchangeBoundOk(Method):
    """Code 0 if it has; other codes say what is missing (Qpid)."""

    reply_code: int = 0
    reply_text: str = ""


# --- basic, class 60 ----------------------------------------------------------------------------


class BasicRecoverSync(Method):
    """Deliver unacknowledged messages again, with a reply (Qpid's 0-9)."""

    requeue: bool = False


class BasicRecoverSyncOk(Method):
    """Unacknowledged messages are delivered again from now on (Qpid's 0-9)."""
