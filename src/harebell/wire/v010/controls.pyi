# Written by tools/method_stubs.py from the tables.
from harebell.wire.v010.composites import Control as Control
from typing import Any as Any


class ConnectionStart(Control):
    """Start of the handshake: the server's properties and SASL mechanisms."""

    server_properties: dict[str, Any] = {}
    mechanisms: list[Any] = []
    locales: list[Any] = []

class ConnectionStartOk(Control):
    """The client's properties, its SASL mechanism and first response."""

    client_properties: dict[str, Any] = {}
    mechanism: str = ''
    response: bytes = b''
    locale: str = ''

class ConnectionSecure(Control):
    """A SASL challenge of the server."""

    challenge: bytes = b''

class ConnectionSecureOk(Control):
    """The client's SASL response."""

    response: bytes = b''

class ConnectionTune(Control):
    """The limits that the server offers."""

    channel_max: int | None = None
    max_frame_size: int | None = None
    heartbeat_min: int | None = None
    heartbeat_max: int | None = None

class ConnectionTuneOk(Control):
    """The limits that the client chooses."""

    channel_max: int = 0
    max_frame_size: int | None = None
    heartbeat: int | None = None

class ConnectionOpen(Control):
    """The virtual host that the client opens."""

    virtual_host: str = ''
    capabilities: list[Any] = []
    insist: bool = False

class ConnectionOpenOk(Control):
    """The connection is open."""

    known_hosts: list[Any] = []

class ConnectionRedirect(Control):
    """The client must connect to another server."""

    host: str = ''
    known_hosts: list[Any] = []

class ConnectionHeartbeat(Control):
    """A heartbeat."""

class ConnectionClose(Control):
    """Close the connection."""

    reply_code: int = 0
    reply_text: str | None = None

class ConnectionCloseOk(Control):
    """Confirm connection.close."""

class SessionAttach(Control):
    """Attach a session to this channel."""

    name: bytes = b''
    force: bool = False

class SessionAttached(Control):
    """Confirm session.attach."""

    name: bytes = b''

class SessionDetach(Control):
    """Detach the session from this channel."""

    name: bytes = b''

class SessionDetached(Control):
    """The session is detached; a code other than 0 is the reason."""

    name: bytes = b''
    code: int = 0

class SessionRequestTimeout(Control):
    """Request the time that the session lives without a channel, in seconds."""

    timeout: int | None = None

class SessionTimeout(Control):
    """The time that the session lives without a channel, in seconds."""

    timeout: int | None = None

class SessionCommandPoint(Control):
    """The number of the next command."""

    command_id: int = 0
    command_offset: int = 0

class SessionExpected(Control):
    """The commands that a receiver expects."""

    commands: tuple[tuple[int, int], ...] = ()
    fragments: list[Any] = []

class SessionConfirmed(Control):
    """The commands that a receiver has stored."""

    commands: tuple[tuple[int, int], ...] = ()
    fragments: list[Any] = []

class SessionCompleted(Control):
    """The commands that a receiver has executed."""

    commands: tuple[tuple[int, int], ...] = ()
    timely_reply: bool = False

class SessionKnownCompleted(Control):
    """The commands that the sender knows to be completed."""

    commands: tuple[tuple[int, int], ...] = ()

class SessionFlush(Control):
    """Request expected, confirmed or completed at once."""

    expected: bool = False
    confirmed: bool = False
    completed: bool = False

class SessionGap(Control):
    """Commands that will never be sent."""

    commands: tuple[tuple[int, int], ...] = ()
