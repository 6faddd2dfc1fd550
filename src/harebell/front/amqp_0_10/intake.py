"""The input of a connection: pass complete transfers to their session, assemble other frames.

control                   ->  harebell.front.amqp_0_10.handshake, .attach
command, header, body     ->  harebell.front.amqp_0_10.execution
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from harebell.auth.authority import Undecided
from harebell.base.c_types import Done, Py, i32
from harebell.base.message import Properties
from harebell.front.amqp_0_10 import execution
from harebell.front.amqp_0_10.assembly import Assembly
from harebell.front.amqp_0_10.file_stage import begin_body
from harebell.front.common.decisions import decide
from harebell.front.limits import ASSEMBLED_MAX_BYTES
from harebell.front.operations.publishing_channel import PublishingChannel
from harebell.kernels.segments import CONTROL, HEADER, LAST_FRAME, SegmentSink
from harebell.wire.v010.spec import FRAMING_ERROR
from harebell.wire.v09.states import ConnectionState

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.connection import Connection


class Intake(SegmentSink):
    """Passes input from the scanner to the sessions.

    Args:
        connection: where the input comes from, and where errors end it.
        sessions: the sessions by channel; the connection changes it.
    """

    def __init__(self, connection: Connection, sessions: dict[int, Any]) -> None:
        self._connection: Py[Connection] = connection
        self._sessions = sessions
        self.assemblies: dict[tuple[int, int], Assembly] = {}

    def break_cycle(self) -> None:
        """Break the reference cycle with the connection."""
        self._connection = None  # type: ignore[assignment]
        self._sessions = {}

    def transfer(
        self,
        channel: i32,
        flags: i32,
        destination: str,
        routing_key: str,
        properties: Properties,
        body: bytes,
    ) -> Done:
        """Take a complete message.transfer from the scanner."""
        session: PublishingChannel | None = self._sessions.get(channel)
        if session is None:
            self._connection.not_attached(channel)
            return 0
        session.transfer(flags, destination, routing_key, properties, body)
        return 0

    def frame(self, flags: i32, kind: i32, track: i32, channel: i32, payload: bytes) -> Done:
        """Take a single frame."""
        connection = self._connection
        try:
            self._frame(flags, kind, track, channel, payload)
        except Exception as error:
            connection.caught(error)
        return 0

    def _frame(self, flags: int, kind: int, track: int, channel: int, payload: bytes) -> None:
        connection = self._connection
        # AMQP 0-10 4.2: controls have track 0, and commands with their content track 1.
        if track != (0 if kind == CONTROL else 1):
            raise connection.error(FRAMING_ERROR, f"segment type {kind} on track {track}")
        is_open = connection.state is ConnectionState.OPEN
        if (channel or kind != CONTROL) and not is_open:
            # Nothing of it is kept: there is no session that could use it.
            connection.not_attached(channel)
            return
        # By track as well: a control may come between the segments of a command.
        key = (channel, track)
        assembly = self.assemblies.get(key)
        if assembly is None:
            # A peer that has not logged in gets little memory for a control.
            assembly = Assembly(
                connection.registry.gauge,
                connection.message_max,
                connection.registry.work,
                ASSEMBLED_MAX_BYTES if is_open else connection.settings.initial_frame_max,
            )
            self.assemblies[key] = assembly
            # The scanner passes on whole transfers only while this is zero.
            connection.scanner.pending += 1
        try:
            whole = assembly.frame(flags, kind, payload)
        except Exception:
            self.drop(key, unfinished=True)
            raise
        if not whole:
            # An unfinished body takes memory: the publisher may have to be blocked.
            connection.published = True
            connection.begins_publish()
            # The body of a file goes to the staging area and not into memory: find out in time.
            if kind == HEADER and flags & LAST_FRAME and channel in self._sessions:
                begin_body(self._sessions[channel], assembly)
            return
        self.drop(key)
        if kind == CONTROL:
            control = assembly.control()
            try:
                connection.control(channel, control)
            except Undecided as undecided:
                # Of connection.open: nothing is done before the check.
                decide(connection, undecided, partial(self._repeat, channel, control))
            return
        session = self._sessions.get(channel)
        if session is None:
            connection.not_attached(channel)
        else:
            execution.take(session, assembly)

    def _repeat(self, channel: int, control: bytes) -> None:
        """Repeat a control that a decision about a permission was needed for."""
        try:
            self._connection.control(channel, control)
        except Undecided:
            raise
        except Exception as error:
            self._connection.caught(error)

    def drop(self, key: tuple[int, int], *, unfinished: bool = False) -> None:
        """Remove an assembly that is complete or was dropped."""
        assembly = self.assemblies.pop(key, None)
        if assembly is not None:
            if unfinished:
                assembly.drop()
            else:
                assembly.release()
            self._connection.scanner.pending -= 1

    def drop_all(self) -> None:
        """Drop everything: the connection is closed."""
        for key in list(self.assemblies):
            self.drop(key, unfinished=True)
