"""The life of a client's connection, common to all versions of AMQP.

    STARTING -> TUNING -> OPENING -> OPEN -> CLOSING -> CLOSED
        |          |         |         |        |          ^
        +----------+---------+---------+--------+----------+   end of input, time, an error

The module `core` of each version adds its protocol.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from harebell.base.body_frames import BodyFrames
from harebell.base.errors import ProtocolError
from harebell.base.limits import CLOSE_TIMEOUT_SECONDS
from harebell.client.errors import (
    AMQPError,
    AuthenticationFailed,
    ClientClosed,
    ConnectionFailed,
    ConnectionLost,
    ConnectTimeout,
    UnsupportedByVersion,
    closed_connection,
)
from harebell.client.limits import CLIENT_CHUNK_BYTES, CLOSE_BLOCKED_SECONDS
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import Recorder
from harebell.client.url import URL

_BEATS_BEFORE_LOST = 2
_TICKS_PER_BEAT = 4


class ConnectionPhase(enum.Enum):
    """The phases of a connection."""

    STARTING = "starting"
    TUNING = "tuning"
    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"
    CLOSED = "closed"


class Ending(Protocol):
    """A channel, which ends with its connection."""

    def end(self, error: AMQPError) -> None:
        """End, with the reason."""


class Output(Protocol):
    """A buffer for output."""

    def raw(self, data: bytes) -> object:
        """Append bytes."""

    def take_parts(self) -> list[bytes | BodyFrames]:
        """Remove and return everything: bytes, and frames that are encoded later."""


class Scanner(Protocol):
    """Find frames in bytes."""

    fast: bool
    stopped: bool


C = TypeVar("C", bound=Ending)


class Life(Generic[C]):
    """State, time and end of one connection.

    Args:
        url: the address; the shell has connected already.
        now: the time, in seconds of any monotonic clock.
        properties: added to the client properties.

    Attributes:
        opened: settled when the connection is open, or has failed to open.
        closed: settled when it is closed; with an error unless this program closed it.
        blocked: why the broker blocks publishers; None if it does not.
        heartbeat: seconds; twice that without input means that the connection is lost. 0 for none.
        beat_seconds: the interval of our heartbeats, in seconds; 0 for none.
        finished: whether the socket must be closed after the output is written.
    """

    out: Output
    scanner: Scanner
    heartbeat_frame = b""
    """A heartbeat frame of the version, for senders without the core."""

    def __init__(self, url: URL, now: float, properties: dict[str, Any] | None = None) -> None:
        self.url = url
        self.state = ConnectionPhase.STARTING
        self.channel_max = 0
        self.heartbeat = 0
        self.opened: Call[None] = Call()
        self.closed: Call[None] = Call()
        self.error: AMQPError | None = None
        self.channels: dict[int, C] = {}
        self.blocked: str | None = None
        self.recorder: Recorder | None = None
        self.on_blocked: Callable[[str | None], None] | None = None
        self.server_properties: dict[str, Any] = {}
        self.reading_paused = False
        self.last_received = now
        self._properties = properties or {}
        self._wrote = False
        # Taken from `out`, and not written yet.
        self._parts: list[bytes | BodyFrames] = []
        self._next_beat: float | None = None
        self.beat_seconds = 0.0
        self._deadline: float | None = now + url.connection_timeout

    # --- implemented by each version ------------------------------------------------------------

    @abstractmethod
    def _read(self, data: bytes | bytearray | memoryview) -> None:
        """Process input.

        Raises:
            ProtocolError: it violates the protocol.
            AMQPError: the connection cannot continue.
        """

    @abstractmethod
    def _say_close(self, code: int, text: str) -> None:
        """Request the close of the connection."""

    def check_extension(self, name: str) -> None:
        """Refuse Harebell's protocol extensions, which are defined for 0-9-1.

        Raises:
            UnsupportedByVersion: always.
        """
        raise UnsupportedByVersion(self.url.version, f"class {name}")

    def _say_alive(self) -> None:
        """Send a heartbeat."""
        self.out.raw(self.heartbeat_frame)

    def handle_secure(self, method: Any) -> None:
        raise AuthenticationFailed("the broker asks for more than a user name and a password")

    def handle_open_ok(self, method: Any) -> None:
        self.state = ConnectionPhase.OPEN
        self.scanner.fast = True
        self._deadline = None
        self.opened.succeed(None)

    def handle_close_ok(self, method: Any) -> None:
        self._finish(None)

    def _finish_as(self, refused: int, code: int, text: str, *method: int) -> None:
        """Finish as the broker's connection.close says.

        Args:
            refused: the reply code of a refused login.
            code: the reply code.
            text: the reply text.
            method: class and method that the reply is about, if the version names them.
        """
        if self.state is ConnectionPhase.CLOSING:
            # Both sides close at once (AMQP 0-9-1 2.2.4): our own close-ok is due as well.
            self._finish(None)
        elif self.state is ConnectionPhase.TUNING and code == refused:
            self._finish(AuthenticationFailed(f"{code} {text}", login=self.url.login))
        else:
            self._finish(closed_connection(code, text, *method))

    def forget(self, number: int) -> None:
        """Free the number of the channel."""
        self.channels.pop(number, None)
        if self.recorder is not None:
            self.recorder.forget_channel(number)

    def _refuse(self, error: ProtocolError) -> None:
        """Close after a protocol error of the broker."""
        where = self.url.address
        self._finish(ConnectionLost(f"the broker at {where} broke the protocol: {error.text}"))

    def _hung_up(self, reason: str) -> AMQPError:
        """Return the error for an end of input before the connection is open."""
        return ConnectionFailed(f"{reason} ({self.url.address})")

    # --- for the shell --------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether no more input is read."""
        return self.state is ConnectionPhase.CLOSED

    def receive(self, data: bytes | bytearray | memoryview, now: float) -> None:
        """Process input from the broker."""
        if self.state is ConnectionPhase.CLOSED or len(data) == 0:
            return
        self.last_received = now
        try:
            self._read(data)
        except ProtocolError as error:
            self._refuse(error)
        except AMQPError as error:
            self._finish(error)
        except BaseException:
            # A callback of the program raised: the content being assembled is lost.
            self._finish(ConnectionLost("a callback of the client failed while reading"))
            raise

    def take_output(self) -> bytes:
        """Return the next bytes to write; empty when there are no more."""
        if not self._parts:
            self._parts.extend(self.out.take_parts())
        if not self._parts:
            return b""
        self._wrote = True
        part = self._parts[0]
        if isinstance(part, bytes):
            del self._parts[0]
            return part
        data = part.take(CLIENT_CHUNK_BYTES)
        if not part.left:
            del self._parts[0]
        return data

    def eof(self, reason: str = "the broker closed the socket without connection.close") -> None:
        """End the connection: the socket is closed or broken."""
        if self.state is ConnectionPhase.CLOSED:
            return
        if self.state is ConnectionPhase.CLOSING:
            self._finish(None)
        elif self.state is ConnectionPhase.OPEN:
            self._finish(ConnectionLost(f"{reason} ({self.url.address})"))
        else:
            self._finish(self._hung_up(reason))

    def wake_at(self) -> float | None:
        """Time at which `tick` is due; None if nothing is scheduled."""
        times = [due for due in (self._deadline, self._next_beat) if due is not None]
        return min(times) if times else None

    def excuse(self, late: float) -> None:
        """Do not count seconds in which the program did not read as silence of the broker."""
        self.last_received += late
        if self._deadline is not None:
            self._deadline += late

    def tick(self, now: float) -> None:
        """Handle the passing of time: send a heartbeat, or time out."""
        if self.state is ConnectionPhase.CLOSED:
            return
        if self._deadline is not None and now >= self._deadline:
            self._timed_out()
        elif self._next_beat is not None and now >= self._next_beat:
            self._beat(now)

    def _timed_out(self) -> None:
        if self.state is ConnectionPhase.CLOSING:
            self._finish(None)
            return
        seconds = self.url.connection_timeout
        self._finish(
            ConnectTimeout(
                f"the broker at {self.url.address} did not finish the handshake in "
                f"{seconds:g} seconds (state {self.state.value})"
            )
        )

    def _begin_beating(self, every: float | None = None) -> None:
        """Begin to send and miss heartbeats.

        Args:
            every: the interval of ours, in seconds; None for that of both sides.
        """
        self.beat_seconds = self.heartbeat if every is None else every
        if self.beat_seconds:
            self._next_beat = self.last_received + self.beat_seconds / _TICKS_PER_BEAT

    def _beat(self, now: float) -> None:
        """Send or miss heartbeats (AMQP 0-9-1 4.2.7): any byte counts as one, both ways."""
        self._next_beat = now + self.beat_seconds / _TICKS_PER_BEAT
        silence = now - self.last_received
        patience = self.heartbeat * _BEATS_BEFORE_LOST
        if 0 < patience < silence and not self.reading_paused:
            text = f"nothing came from {self.url.address} for {silence:.0f} seconds"
            self._finish(ConnectionLost(f"{text}, with heartbeats every {self.heartbeat}"))
            return
        if not self._wrote:
            self._say_alive()
        self._wrote = False

    # --- verbs ----------------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raise the error of a connection that is not open."""
        if self.state is not ConnectionPhase.OPEN:
            raise (self.error or ClientClosed("the connection is not open")).with_traceback(None)

    def _free_number(self, requested: int | None) -> int:
        """Return the number of a new channel: the requested one, or the lowest free one.

        Raises:
            ClientClosed: every channel that the broker allows is in use.
        """
        number = requested
        if number is None:
            number = 1
            while number in self.channels:
                number += 1
        if number > self.channel_max:
            raise ClientClosed(f"all {self.channel_max} channels of the connection are in use")
        return number

    def close(self, now: float, code: int = 200, text: str = "bye") -> Call[None]:
        """Close the connection gracefully (connection.close of every version)."""
        if self.state is ConnectionPhase.OPEN:
            self._close_channels(ClientClosed("the connection was closed"))
            self.error = ClientClosed("the connection was closed")
            self._say_close(code, text)
            self.state = ConnectionPhase.CLOSING
            # A broker that blocks publishers does not read, so it will hardly answer.
            patience = CLOSE_TIMEOUT_SECONDS if self.blocked is None else CLOSE_BLOCKED_SECONDS
            self._deadline = now + patience
        elif self.state not in (ConnectionPhase.CLOSING, ConnectionPhase.CLOSED):
            self._finish(ClientClosed("the connection was closed before it was open"))
        return self.closed

    # --- the end --------------------------------------------------------------------------------

    def _close_channels(self, error: AMQPError) -> None:
        channels, self.channels = self.channels, {}
        for channel in channels.values():
            channel.end(error)

    def _finish(self, error: AMQPError | None) -> None:
        if self.state is ConnectionPhase.CLOSED:
            return
        self.state = ConnectionPhase.CLOSED
        self.scanner.stopped = True
        self._deadline = self._next_beat = None
        self.error = error or self.error or ClientClosed("the connection was closed")
        self._close_channels(self.error)
        self.opened.fail(self.error)
        if error is None:
            self.closed.succeed(None)
        else:
            self.closed.fail(error)
