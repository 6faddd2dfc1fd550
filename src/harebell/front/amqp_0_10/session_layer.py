"""The session layer of 0-10: command numbers, completions and replay.

Both sides number their commands from 0. This module tracks which of the peer's are executed:

    commands    0 1 2 3 | 4 5 6 | 7 8
                mark    | mark  |           commands up to a mark wait for its commit
    waits for   none    | 7     | 8         the newest: `_ticket`

A command is complete when its changes are on disk; they complete in order, and at the end of a
turn one session.completed reports the new ones. `Session` executes the commands.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from harebell.auth.authority import Undecided
from harebell.base.c_types import C, Done, Py, i32, i64, isize
from harebell.base.errors import ProtocolError, Refusal
from harebell.base.message import Message, Properties
from harebell.base.ports import Commit
from harebell.front.amqp_0_10.errors import (
    FRAMING_ERROR,
    INTERNAL_ERROR,
    DetachError,
    described,
    execution_code,
    unknown_commands,
)
from harebell.front.amqp_0_10.replay import Replay
from harebell.front.common.decisions import decide
from harebell.front.common.errors import describe
from harebell.front.common.event_exchange import channel_closed
from harebell.front.limits import OUTPUT_HIGH_BYTES, OUTPUT_STOP_BYTES, REPLAY_BYTES
from harebell.front.operations.publishing_channel import PublishingChannel
from harebell.wire.v010 import commands, controls
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Command, Composite, Ranges
from harebell.wire.v010.ranges import RangeSet, near, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from harebell.auth.users import User
    from harebell.base.timers import Timer
    from harebell.front.amqp_0_10.connection import Connection

_AT_ONCE: i64 = 0
_HELD = 1 << 60
"""Tickets from here on stand for held commands; no commit ever has such a number."""
_OUTPUT_HIGH: isize = OUTPUT_HIGH_BYTES
_TRANSFER = (4, 1)
_MS = 1000
_TEXT_BYTES = 1024
"""Bytes of a description; more would be cut by clients anyway."""
_MAX = 1 << 30
"""Numbers that a range may span; serial arithmetic ends at twice as many."""
_ASK = 1 << 16
"""Completions after which the peer is asked which ones it knows of."""


class SessionLayer(PublishingChannel):
    """A session, on a channel or without one.

    Args:
        connection: the connection that it is attached to first.
        number: the channel.
        name: its name, unique for the user.

    Attributes:
        connection: its current or last connection.
        attached: whether it is on a channel and may send commands.
        received: the number of the peer's next command.
        current: the number of the peer's command that is being executed.
        done: the peer's commands below this number are executed.
        known: the peer knows the completion of its commands below this number.
        sent: the number of the broker's next command.
        settled: the broker's commands that the peer has executed.
        timeout: how long it lives without a channel, in seconds.
        replay: commands for a replay; None for a session without a timeout.
        ended: whether it has ended.
        holds: numbers of the peer's commands that wait for something other than a commit, by the
            tickets that represent it; None before the first.
    """

    def __init__(self, connection: Connection, number: int, name: bytes) -> None:
        assert connection.vhost is not None, "sessions are attached on open connections"
        super().__init__(number, connection.vhost)
        self.connection = connection
        self.attached = True
        self.name = name
        self.received: i64 = 0
        self.current: i64 = 0
        self.done: i64 = 0
        self.known: i64 = 0
        self.sent: i64 = 0
        self.settled = RangeSet()
        self.timeout: i64 = 0
        self.replay: Replay | None = None
        self.expiry: Timer | None = None
        self.ended = False
        self.holds: Py[dict[int, int] | None] = None
        self._executed: i64 = 0
        self._reported: i64 = 0
        self._asked: i64 = 0
        self._enlisted = False
        self._commit: Commit = connection.commit
        self._ticket: i64 = _AT_ONCE
        # (ticket, number of the first command that does not wait for it), before `_ticket`
        self._marks: deque[tuple[int, int]] = deque()

    # --- implemented by Session -----------------------------------------------------------------

    def delivered(self, first: int, last: int) -> None:
        """Note that the peer has executed the broker's commands from `first` to `last`."""

    def serve(self) -> Done:
        """Serve the consumers of the session."""
        return 0

    def close(self) -> None:
        """Remove consumers, requeue unsettled deliveries, then call `closed`."""
        self.closed()

    # --- the peer's commands --------------------------------------------------------------------

    def transfer(
        self, flags: i32, destination: str, routing_key: str, properties: Properties, body: bytes
    ) -> Done:
        """Take a complete message.transfer from the scanner."""
        if self.begin():
            try:
                self.publish(flags, destination, routing_key, properties, body)
            except Undecided as undecided:
                repeat = partial(self.publish, flags, destination, routing_key, properties, body)
                self.decide(undecided, repeat, *_TRANSFER)
            except Exception as error:
                self.caught(error, *_TRANSFER)
        return 0

    def decide(
        self,
        undecided: Undecided,
        repeat: Callable[[], object],
        class_code: int,
        command_code: int,
    ) -> None:
        """Ask for a decision about a permission, and repeat the command, which is held.

        Args:
            undecided: what was raised.
            repeat: executes the command.
            class_code: the class of the command.
            command_code: the code of the command in its class.
        """
        held = self.hold()
        step = partial(self._repeat, repeat, held, class_code, command_code)
        decide(self.connection, undecided, step)

    def _repeat(
        self, repeat: Callable[[], object], held: int, class_code: int, command_code: int
    ) -> None:
        if self.ended:
            return
        self.connection.broker.events.actor = self.connection.user.name
        try:
            repeat()
        except Undecided:
            # A second permission is undecided: the connection asks for it too.
            raise
        except Exception as error:
            self.caught(error, class_code, command_code)
        self.let_complete(held, 0)

    def begin(self) -> C[bool]:
        """Number the next command; False when it was executed before the session was resumed."""
        number = self.received
        self.received = number + 1
        # Also for a skipped command: the peer replays it because it missed the completion.
        if not self._enlisted:
            self.enlist()
        if number < self._executed:
            return False
        self._executed = number + 1
        self.current = number
        return True

    def done_before(self) -> bool:
        """True if the next command was executed before the session was resumed."""
        return self.received < self._executed

    def enlist(self) -> Done:
        """Have the completions sent at the end of the turn."""
        self._enlisted = True
        self.connection.completing.append(self)
        return 0

    def wait_for(self, ticket: i64) -> Done:
        """Complete the current command when that commit is on disk."""
        commit = self._commit
        # With the same ticket as the commands before it, it needs no mark of its own.
        if ticket <= commit.done or ticket == self._ticket:
            return 0
        if ticket == commit.ticket:
            commit.urgent = True
        # Commands below this one keep their ticket: completions are in order.
        self._marks.append((self._ticket, self.current))
        self._ticket = ticket
        self.connection.registry.waiting[self] = None
        return 0

    def hold(self) -> int:
        """Hold the current command until `let_complete` is called.

        Returns:
            The ticket of the held command.
        """
        if self.holds is None:
            self.holds = {}
        ticket = max(self.holds, default=_HELD) + 1
        self.holds[ticket] = self.current
        self.wait_for(ticket)
        return ticket

    def held_command(self, held: int) -> int:
        """Return the number of a held command; 0 is the current one."""
        return (self.holds or {}).get(held, self.current)

    def let_complete(self, held: int, ticket: int) -> None:
        """Release a held command; it is complete when that commit is on disk, or now."""
        if self.holds is None or self.holds.pop(held, None) is None:
            return
        marks = [(ticket if each == held else each, number) for each, number in self._marks]
        self._marks = deque(marks)
        # It is in the marks if later commands got another ticket, else it is the newest.
        if self._ticket == held:
            self._ticket = ticket
        commit = self._commit
        if ticket == commit.ticket:
            commit.urgent = True
        self.connection.registry.waiting[self] = None
        self.complete()

    def committed(self) -> None:
        """Send the completions that waited for a commit that is on disk."""
        self.complete()
        # The registry has removed it; later commands wait for a later commit.
        if not self.ended and (self._marks or self._ticket > self._commit.done):
            self.connection.registry.waiting[self] = None

    def complete(self) -> Done:
        """Send session.completed for commands that are complete."""
        self._enlisted = False
        if self.ended:
            return 0
        done = self._commit.done
        while self._marks and self._marks[0][0] <= done:
            self.done = self._marks.popleft()[1]
        if not self._marks and self._ticket <= done:
            self.done = self._executed
        if self.done > self._reported and self.attached:
            self.send_completed()
        return 0

    def complete_behind(self) -> None:
        """Send the completions of an ending session behind a barrier."""
        self.connection.registry.waiting.pop(self, None)
        newest = _AT_ONCE
        # Held commands are left out: what they wait for may never come once the session has ended.
        for ticket in [self._ticket, *[ticket for ticket, _ in self._marks]]:
            newest = max(newest, ticket) if ticket < _HELD else newest
        if newest > self._commit.done:
            # The detach that follows must not overtake completions, so all output waits.
            self.connection.hold_until(newest)
        self._marks.clear()
        waiting = list((self.holds or {}).values())
        self.done = min(self.current, min(waiting, default=self.current))
        if self.done > self._reported and self.attached:
            self.send_completed()

    def send_completed(self) -> Done:
        """Send session.completed with all completions that the peer may not know."""
        self._reported = self.done
        ask = self.done - max(self.known, self._asked) >= _ASK
        if ask:
            self._asked = self.done
        self.connection.send_control(
            self.number, controls.SessionCompleted(self.completed(), timely_reply=ask)
        )
        return 0

    def completed(self) -> Ranges:
        """Return the completed ranges that the peer may not know."""
        # A longer range would wrap around: serial numbers compare over half of 32 bits.
        first = max(self.known, self.done - _MAX, 0)
        if first >= self.done:
            return ()
        return ((wrapped(first), wrapped(self.done - 1)),)

    # --- the broker's commands ------------------------------------------------------------------

    def can_send(self) -> C[bool]:
        """True if there is a channel, and space in the connection's output, for a delivery."""
        connection = self.connection
        if not self.attached:
            return False
        if connection.congested or connection.out.size >= _OUTPUT_HIGH:
            connection.starved = True
            return False
        # Deliveries are kept until the peer confirms them: one that never does gets no more.
        return self.replay is None or self.replay.byte_count < REPLAY_BYTES

    def deliver(self, command: bytes, redelivered: bool, message: Message) -> i64:
        """Send a delivery; returns its number.

        Args:
            command: the encoded message.transfer.
            redelivered: whether it may have been delivered before.
            message: of family 10.
        """
        connection = self.connection
        number: i64 = self.sent
        self.sent = number + 1
        if self.replay is not None:
            self.replay.transfer(number, command, redelivered, message)
        connection.frames.transfer(self.number, command, redelivered, message, connection.frame_max)
        if not connection.dirty:
            connection.touch()
        return number

    def send(self, command: Command, sync: bool = False) -> int:
        """Send a command without content; returns its number."""
        return self.send_content(AMQP_0_10.encode(command, sync), b"", b"")

    def send_content(self, command: bytes, header: bytes, body: bytes) -> int:
        """Send an encoded command with its content; returns its number."""
        connection = self.connection
        number = self.sent
        self.sent = number + 1
        if self.replay is not None:
            self.replay.content(number, command, header, body)
        # Without a channel it has its number, and is sent with the replay.
        if self.attached:
            connection.frames.assembly(self.number, command, header, body, connection.frame_max)
            connection.touch()
            if connection.out.size > OUTPUT_STOP_BYTES:
                # A peer that sends queries without reading would fill the broker's memory.
                connection.scanner.hold = True
        return number

    def result(self, value: Composite, command_id: int = -1) -> None:
        """Send the execution.result of a command; -1 is the current one."""
        number = self.current if command_id < 0 else command_id
        self.send(commands.ExecutionResult(wrapped(number), value))

    def point(self) -> Done:
        """Send session.command-point."""
        number = self.sent if self.replay is None else self.replay.first(self.sent)
        point = controls.SessionCommandPoint(wrapped(number), 0)
        self.connection.send_control(self.number, point)
        return 0

    def meant(self, ranges: Ranges) -> list[tuple[int, int]]:
        """Return the broker's command numbers for received ranges, first and last of each."""
        return [(near(first, self.sent), near(last, self.sent)) for first, last in ranges]

    def hold_until_recorded(self) -> None:
        """Complete the command when everything that is declared in the vhost is on disk."""
        self.wait_for(self.vhost.recorder.ticket)

    # --- errors ---------------------------------------------------------------------------------

    def caught(self, error: Exception, class_code: int, command_code: int) -> None:
        """End the session because of a command; the connection if frames are malformed."""
        connection = self.connection
        if isinstance(error, DetachError):
            self.detach(error.code, error.text)
            return
        if isinstance(error, ProtocolError) and error.hard and error.code == FRAMING_ERROR:
            # Frame boundaries may be lost for every channel: the session alone cannot end.
            connection.caught(error)
            return
        if isinstance(error, Refusal | ProtocolError):
            code, text = execution_code(error), error.text
        else:
            connection.log("error", f"{connection.peer}: {describe(error)}")
            code, text = INTERNAL_ERROR, "internal error"
        self._fail(code, text, class_code, command_code, getattr(error, "field", None))

    def _fail(
        self, code: int, text: str, class_code: int, command_code: int, field: int | None
    ) -> None:
        if self.ended:
            return
        connection = self.connection
        text = described(code, text)
        connection.log("error", f"{connection.peer}: {self!r} ended: {text}")
        # First: the peer learns from it which commands were executed before the failed one.
        self.complete_behind()
        data = text.encode()
        if len(data) > _TEXT_BYTES:
            text = data[:_TEXT_BYTES].decode(errors="ignore") + "..."
        exception = commands.ExecutionException(
            error_code=code,
            command_id=wrapped(self.current),
            class_code=class_code,
            command_code=command_code,
            field_index=field,
            description=text,
        )
        self.send(exception)
        self.ask_to_detach()

    def ask_to_detach(self) -> None:
        """Send session.detach; input is ignored until the peer answers."""
        connection, number = self.connection, self.number
        connection.send_control(number, controls.SessionDetach(self.name))
        connection.ending[number] = self.name
        self.end()

    def detach(self, code: int, text: str) -> None:
        """Leave the channel and end, with a reason for the peer."""
        connection, number = self.connection, self.number
        connection.log("error", f"{connection.peer}: {self!r} detached: {text}")
        connection.send_control(number, controls.SessionDetached(self.name, code))
        connection.ending[number] = self.name
        self.end()

    # --- the end --------------------------------------------------------------------------------

    @property
    def user(self) -> User:
        """The user of the session; only the same user can resume it."""
        user: User = self.connection.user
        return user

    @property
    def key(self) -> tuple[str, str, bytes]:
        """The key of the session in the broker."""
        return self.vhost.name, self.user.name, self.name

    @property
    def on_channel(self) -> bool:
        """True if the session is on a channel, even if nothing may be sent there yet."""
        return not self.ended and self.connection.channels.get(self.number) is self

    def leave_first(self) -> None:
        """Stop deliveries to a session that ends with its connection; its name is free."""
        # One with a timeout lives on, and `leave` detaches it.
        if not self.timeout:
            self.attached = False
            self._free_name()

    def leave(self) -> None:
        """Detach from the channel; a session without a timeout ends."""
        if not self.timeout:
            self.end()
            return
        self.attached = False
        self._enlisted = False
        self.connection.channels.pop(self.number, None)
        timers = self.connection.broker.timers
        if self.expiry is None:
            self.expiry = timers.timer(self.end)
        self.expiry.set(timers.clock.steady + self.timeout * _MS)

    def move(self) -> None:
        """Detach from the channel, to be attached elsewhere at once."""
        self.attached = False
        self._enlisted = False
        if self.connection.channels.get(self.number) is self:
            del self.connection.channels[self.number]

    def return_to(self, connection: Connection, number: int) -> None:
        """Resume on a channel; nothing is sent there before the peer's state is known."""
        if self.expiry is not None:
            self.expiry.stop()
        self.connection = connection
        self.number = number
        # The last completions may have been lost with the old connection: report them again.
        self._reported = self.known
        if not self._enlisted:
            self.enlist()

    def send_again(self, first: int) -> None:
        """Replay commands from that number on, and continue."""
        connection = self.connection
        if self.replay is not None:
            # The peer expects none of them any more, so it has received them.
            for number in self.replay.numbers():
                if number < first:
                    self.replay.drop(number, number)
        # The control session.command-point comes before the first command it numbers.
        self.point()
        if self.replay is not None:
            for number in self.replay.numbers():
                self.replay.write(number, self.number, connection.frames, connection.frame_max)
        self.attached = True
        if not self._enlisted:
            self.enlist()
        connection.touch()
        self.serve()

    def go_on_at(self, number: int) -> None:
        """Set the number of the peer's next command; executed ones are skipped."""
        if not self.received:
            # A new session may begin at any number; those below it were never sent.
            self._executed = self.done = self.known = self._reported = number
        self.received = number

    def pass_over(self, number: int) -> None:
        """Skip the peer's commands below this number."""
        if number > self.received:
            self.received = number
            self._executed = max(self._executed, number)
            self.current = number - 1
            if not self._enlisted:
                self.enlist()

    def end(self) -> None:
        """End the session."""
        if self.ended:
            return
        self.ended = True
        self.attached = False
        if self.expiry is not None:
            self.expiry.stop()
        registry = self.connection.registry
        registry.waiting.pop(self, None)
        if self.timeout:
            registry.kept_sessions.remove(self.user.name)
        self._free_name()
        # By now the channel may belong to another session.
        if self.connection.channels.get(self.number) is self:
            del self.connection.channels[self.number]
        self.close()

    def _free_name(self) -> None:
        # By now it may belong to another session.
        names = self.connection.registry.named_sessions
        if names.get(self.key) is self:
            del names[self.key]

    def closed(self) -> None:
        """Drop the queues of the session after its end, and emit channel.closed."""
        self.vhost.drop_owned(self)
        channel_closed(self)

    # --- completions from the peer --------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<session {self.name!r} of {self.user.name}>"

    def settle_known(self, first: int, last: int) -> None:
        """Note that the peer knows the completion of its commands from `first` to `last`."""
        # A range beyond a gap is ignored: `known` is one number, and reporting twice is harmless.
        if first <= self.known <= last:
            self.known = min(last + 1, self.done)

    def acknowledged(self, ranges: Ranges) -> None:
        """Note that the peer has executed commands of the broker."""
        for first, last in self.meant(ranges):
            if last >= self.sent:
                raise unknown_commands(first, last)
            # Peers repeat completions: only what is new in the set is dropped and gives credit.
            for low, high in self.settled.add(max(first, 0), last):
                if self.replay is not None:
                    self.replay.drop(low, high)
                self.delivered(low, high)
