"""The controls of AMQP 0-10 as typed values; see `harebell.wire.v010.structs`."""

from __future__ import annotations

from typing import Any

from harebell.wire.v010.structs import Control, Ranges, Table

# --- connection, class 1 --------------------------------------------------------------------------


class ConnectionStart(Control):
    """The server introduces itself and offers SASL mechanisms."""

    server_properties: Table = {}
    mechanisms: list[Any] = []
    locales: list[Any] = []


class ConnectionStartOk(Control):
    """The client introduces itself and begins to log in."""

    client_properties: Table = {}
    mechanism: str = ""
    response: bytes = b""
    locale: str = ""


class ConnectionSecure(Control):
    """The server asks another question of the SASL mechanism."""

    challenge: bytes = b""


class ConnectionSecureOk(Control):
    """The client's answer to it."""

    response: bytes = b""


class ConnectionTune(Control):
    """The limits that the server offers."""

    channel_max: int | None = None
    max_frame_size: int | None = None
    heartbeat_min: int | None = None
    heartbeat_max: int | None = None


class ConnectionTuneOk(Control):
    """The limits that the client settles on."""

    channel_max: int = 0
    max_frame_size: int | None = None
    heartbeat: int | None = None


class ConnectionOpen(Control):
    """The client chooses a virtual host."""

    virtual_host: str = ""
    capabilities: list[Any] = []
    insist: bool = False


class ConnectionOpenOk(Control):
    """The connection may be used."""

    known_hosts: list[Any] = []


class ConnectionRedirect(Control):
    """The client shall go to another server."""

    host: str = ""
    known_hosts: list[Any] = []


class ConnectionHeartbeat(Control):
    """Nothing but a sign of life."""


class ConnectionClose(Control):
    """One side ends the connection."""

    reply_code: int = 0
    reply_text: str | None = None


class ConnectionCloseOk(Control):
    """The other side has ended it, too."""


# --- session, class 2 -----------------------------------------------------------------------------


class SessionAttach(Control):
    """A peer wants a session on this channel."""

    name: bytes = b""
    force: bool = False


class SessionAttached(Control):
    """The session is on this channel."""

    name: bytes = b""


class SessionDetach(Control):
    """A peer wants the session off this channel."""

    name: bytes = b""


class SessionDetached(Control):
    """The session is off this channel; a code other than 0 says why."""

    name: bytes = b""
    code: int = 0


class SessionRequestTimeout(Control):
    """How long the session shall live without a channel, in seconds."""

    timeout: int | None = None


class SessionTimeout(Control):
    """How long the session will live without a channel, in seconds."""

    timeout: int | None = None


class SessionCommandPoint(Control):
    """Where the commands that follow begin."""

    command_id: int = 0
    command_offset: int = 0


class SessionExpected(Control):
    """What a receiver waits for."""

    commands: Ranges = ()
    fragments: list[Any] = []


class SessionConfirmed(Control):
    """What a receiver will not forget."""

    commands: Ranges = ()
    fragments: list[Any] = []


class SessionCompleted(Control):
    """What a receiver has carried out."""

    commands: Ranges = ()
    timely_reply: bool = False


class SessionKnownCompleted(Control):
    """What the sender knows to be carried out."""

    commands: Ranges = ()


class SessionFlush(Control):
    """A peer wants to hear at once what the other side received or has done."""

    expected: bool = False
    confirmed: bool = False
    completed: bool = False


class SessionGap(Control):
    """Commands that will never come."""

    commands: Ranges = ()
