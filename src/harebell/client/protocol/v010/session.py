r"""A session of final 0-10 as a channel of the client: the same verbs, other commands.

    attach, command-point --> attached      numbered commands -->      detach --> detached
                                            <-- results, completed, numbered transfers
                                            completed, accept -->

Our commands are numbered from 0, and done when the broker marks them as completed; a result
arrives before that. So a publish is confirmed when its transfer is completed. The broker's
transfers are numbered, too: an acknowledgement completes them, which returns their credit, and
accepts them. An error (execution.exception) ends the session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from harebell.base.errors import ProtocolError
from harebell.base.message import FAMILY_010, Properties
from harebell.base.message import Message as WireMessage
from harebell.client.errors import (
    AMQPError,
    ClientClosed,
    PublishReturned,
    closed_channel,
)
from harebell.client.message import ReturnedMessage
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import CONFIRM, OPEN, PLAIN, ChannelPhase, Got, Mode
from harebell.client.protocol.confirms import MANDATORY, ConfirmWaiter
from harebell.client.protocol.v010 import commands as plans
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.wire.convert.final import delivered_by, from_basic, to_basic
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls
from harebell.wire.v010.composites import Command, Control, Ranges
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import FrameSink

T = TypeVar("T")

_NUMBERS = 1 << 32
_HALF = 1 << 31
_NO_ROUTE = 312
_EXPLICIT, _NONE = 0, 1
_DISCARD_AT = 6
_DISCARD = 1


class _Waiting:
    """A verb that waits for the completion of its last command."""

    def __init__(self, call: Call[Any], finish: Callable[[list[Any]], Any]) -> None:
        self.call = call
        self.results: list[Any] = []
        self.finish = finish


class CoreSession(CoreChannel):
    """The protocol state of one session; no I/O. It has the verbs of `protocol.channel`."""

    def __init__(self, host: Any, number: int, name: bytes, *, confirms: bool, keep: bool) -> None:
        super().__init__(host, number, confirms=confirms, keep=keep)
        self.name = name
        self._session: Any = host
        self._opening: Call[CoreChannel] = Call()
        self._closing: Call[None] = Call()
        self._next = 0
        self._received = 0
        self._verbs: dict[int, _Waiting] = {}
        self._last: dict[int, _Waiting] = {}
        self._publishes: dict[int, tuple[int, WireMessage]] = {}
        self._out: dict[int, int] = {}
        self._delivered = 0
        self._gets: dict[str, list[Any]] = {}
        self._prefetch = 0
        self._queues = 0

    # --- sending --------------------------------------------------------------------------------

    def _control(self, control: Control) -> None:
        self._session.send_control(self.number, control)

    def _command(self, command: Command, *, sync: bool = False) -> int:
        """Send a command; return its number."""
        number = self._next
        self._session.send_command(self.number, command, sync)
        self._next = (number + 1) % _NUMBERS
        return number

    def _run(
        self, commands: list[Command], finish: Callable[[list[Any]], T], call: Call[T] | None = None
    ) -> Call[T]:
        """Send the commands of a verb; its call is done when the last command is."""
        waiting = _Waiting(call or Call(), finish)
        last = len(commands) - 1
        for place, command in enumerate(commands):
            self._verbs[self._command(command, sync=place == last)] = waiting
        self._last[(self._next - 1) % _NUMBERS] = waiting
        return waiting.call

    def send(self, method: m.Method) -> None:
        """Not supported: methods of 0-9-1 must be translated."""
        raise AssertionError(f"{method.NAME} has no place in a session")

    def call(
        self,
        method: m.Method,
        replies: tuple[type[m.Method], ...],
        convert: Callable[[Any], T],
    ) -> Call[T]:
        """Translate a method of 0-9-1, and return its reply of 0-9-1."""
        self.check_open()
        method = self._renamed(method)
        if isinstance(method, m.BasicQos):
            self._prefetch = method.prefetch_count
            self._record(method, None)
            return Call.answered(convert(m.BasicQosOk()))
        if isinstance(method, m.BasicRecover):
            self._release(list(self._out), redelivered=True)
            return self._run([c.ExecutionSync()], lambda results: convert(m.BasicRecoverOk()))
        commands, reply = plans.plan(method, self._queue_name, self._prefetch)

        def finish(results: list[Any]) -> T:
            result = convert(reply(results))
            self._record(method, result)
            return result

        return self._run(commands, finish)

    def _queue_name(self) -> str:
        self._queues += 1
        return f"harebell.gen-{self.name.decode()}-{self._queues}"

    def open(self) -> Call[CoreChannel]:
        """Attach the session."""
        self._control(controls.SessionAttach(name=self.name))
        self._control(controls.SessionRequestTimeout(timeout=0))
        self._control(controls.SessionCommandPoint())
        return self._opening

    def close(self) -> Call[None]:
        """Detach the session gracefully; input that is in flight is dropped."""
        if self.state is ChannelPhase.CLOSED:
            self._closing.succeed(None)
            return self._closing
        assert self.state is not ChannelPhase.CLOSING, "the channel is closed twice"
        self.state = ChannelPhase.CLOSING
        self._end(ClientClosed(f"channel {self.number} was closed"))
        self._control(controls.SessionDetach(name=self.name))
        return self._closing

    def select_confirms(self) -> Call[None]:
        """Send nothing: every transfer is completed in this version."""
        self.mode = Mode.CONFIRM
        return Call.answered(None)

    def publish(
        self, message: WireMessage, flags: int, waiting: ConfirmWaiter, token: int = 0
    ) -> bool:
        """Append a transfer to the output; see `CoreChannel.publish`."""
        if self.state is not OPEN:
            self.check_open()
        if self.mode is PLAIN and self.wants_confirms:
            self.mode = Mode.CONFIRM
        mandatory = flags & MANDATORY
        final = from_basic(message)
        if not mandatory:
            final = _discarding(final)
        command = c.MessageTransfer(
            destination=message.exchange or None, accept_mode=_EXPLICIT if mandatory else _NONE
        )
        self._session.send_transfer(self.number, command, final, self.mode is CONFIRM)
        number = self._next
        self._next = (number + 1) % _NUMBERS
        if self.mode is not CONFIRM:
            return False
        self.confirms.expect(waiting, token, message, flags)
        self._publishes[number] = (self.confirms.sequence, message)
        return True

    # --- settling -------------------------------------------------------------------------------

    def _taken(self, tag: int, multiple: bool) -> list[int]:
        """Remove and return the deliveries that a tag covers."""
        if multiple:
            return [each for each in self._out if each <= tag or not tag]
        if tag not in self._out:
            raise ValueError(f"delivery {tag} of channel {self.number} is not out")
        return [tag]

    def _numbers(self, tags: list[int]) -> Ranges:
        """Remove the transfers of some deliveries; return the ranges of their numbers."""
        return _ranges([self._out.pop(tag) for tag in tags])

    def ack(self, tag: int, multiple: bool = False) -> None:
        """Accept a delivery, or all up to it."""
        self.check_open()
        ranges = self._numbers(self._taken(tag, multiple))
        if ranges:
            self._command(c.MessageAccept(transfers=ranges))
            self._control(controls.SessionCompleted(commands=ranges))

    def nack(self, tag: int, *, multiple: bool = False, requeue: bool = True) -> None:
        """Release a delivery, or all up to it; without `requeue` reject it."""
        self.check_open()
        tags = self._taken(tag, multiple)
        if requeue:
            self._release(tags, redelivered=True)
        else:
            ranges = self._numbers(tags)
            self._command(c.MessageReject(transfers=ranges))
            self._control(controls.SessionCompleted(commands=ranges))

    def reject(self, tag: int, *, requeue: bool = False) -> None:
        """Reject one delivery; without `requeue` it is dropped or dead-lettered."""
        self.nack(tag, requeue=requeue)

    def _release(self, tags: list[int], *, redelivered: bool) -> None:
        ranges = self._numbers(tags)
        if ranges:
            self._command(c.MessageRelease(transfers=ranges, set_redelivered=redelivered))
            self._control(controls.SessionCompleted(commands=ranges))

    # --- receiving messages ---------------------------------------------------------------------

    def get(self, queue: str, *, no_ack: bool = False) -> Call[Got | None]:
        """Get one message; None when the queue is empty."""
        self.check_open()
        queue = self._renamed(m.BasicGet(queue=queue)).queue
        destination = self.next_tag()
        delivery: list[Any] = []
        self._gets[destination] = delivery

        def finish(results: list[Any]) -> Got | None:
            del self._gets[destination]
            if not delivery:
                return None
            tag, redelivered, exchange, key, properties, body = delivery
            method = m.BasicGetOk(
                delivery_tag=tag,
                redelivered=redelivered,
                exchange=exchange,
                routing_key=key,
                message_count=results[0].message_count,
            )
            return Got(method, properties, body)

        return self._run(plans.get(queue, destination, no_ack=no_ack), finish)

    def set_sink(self, sink: FrameSink | None) -> None:
        """Pass deliveries of consumers without a callback to a sink."""
        self.sink = sink

    def transfer(self, destination: str, redelivered: bool, raw: Properties, body: bytes) -> None:
        """Handle a message for a subscription."""
        number = self._arrived()
        if self.state is not OPEN:
            return
        exchange, key = delivered_by(raw.raw)
        message = to_basic(WireMessage(exchange, key, raw, body))
        properties = Properties(
            message.raw, message.delivery_mode, message.priority, message.has_headers
        )
        self._delivered += 1
        tag = self._delivered
        consumer = self.consumers.get(destination)
        delivery = self._gets.get(destination)
        if consumer is None and delivery is None:
            raise ProtocolError(503, f"a transfer for the unknown subscription {destination!r}")
        if consumer is not None and consumer.no_ack:
            self._control(controls.SessionCompleted(commands=((number, number),)))
        else:
            self._out[tag] = number
        if delivery is not None:
            delivery += (tag, redelivered, exchange, key, properties, body)
        elif consumer is not None and consumer.on_delivery is not None:
            consumer.on_delivery(tag, redelivered, exchange, key, properties, body)
        elif self.sink is not None:
            self.sink.deliver(
                self.number, destination, tag, redelivered, exchange, key, properties, body
            )

    def _arrived(self) -> int:
        """Return the number of the command that has arrived."""
        number = self._received
        self._received = (number + 1) % _NUMBERS
        return number

    # --- commands and controls of the broker ----------------------------------------------------

    def command(self, command: Command, raw: bytes, body: bytes) -> None:
        """Handle a command, with its header segment and body if it has them."""
        if isinstance(command, c.MessageTransfer):
            redelivered = bool(raw[_DISCARD_AT : _DISCARD_AT + 1]) and _redelivered(raw)
            properties = Properties(raw, family=FAMILY_010)
            self.transfer(command.destination or "", redelivered, properties, body)
            return
        number = self._arrived()
        handler = _COMMANDS.get(type(command))
        if handler is None:
            raise ProtocolError(503, f"{command.NAME} came, which is for brokers")
        handler(self, command)
        self._control(controls.SessionCompleted(commands=((number, number),)))

    def control(self, control: Control) -> None:
        """Handle a control of the session."""
        handler = _CONTROLS.get(type(control))
        if handler is not None:
            handler(self, control)

    def handle_attached(self, control: controls.SessionAttached) -> None:
        self.state = ChannelPhase.OPEN
        self._opening.succeed(self)

    def handle_command_point(self, control: controls.SessionCommandPoint) -> None:
        self._received = control.command_id

    def handle_detached(self, control: controls.SessionDetached) -> None:
        if self.state is ChannelPhase.CLOSING:
            self.state = ChannelPhase.CLOSED
            self._closing.succeed(None)
        else:
            text = f"the broker detached the session (code {control.code})"
            self.end(self.error or closed_channel(control.code, text))
        self._host.forget(self.number)

    def handle_detach(self, control: controls.SessionDetach) -> None:
        self._control(controls.SessionDetached(name=control.name))
        self.end(self.error or ClientClosed("the broker ended the session"))
        self._host.forget(self.number)

    def handle_completed(self, control: controls.SessionCompleted) -> None:
        for first, last in control.commands:
            for number in _within(self._publishes, first, last):
                sequence, _ = self._publishes.pop(number)
                self.confirms.settle(sequence, False, taken=True)
            for number in _within(self._verbs, first, last):
                del self._verbs[number]
                waiting = self._last.pop(number, None)
                if waiting is not None:
                    waiting.call.succeed(waiting.finish(waiting.results))
        if control.timely_reply:
            self._control(controls.SessionKnownCompleted(commands=control.commands))

    def handle_flush(self, control: controls.SessionFlush) -> None:
        if control.completed and self._received:
            done = ((0, self._received - 1),) if not self._out else ()
            self._control(controls.SessionCompleted(commands=done))
        if control.expected:
            expected = ((self._received, self._received),)
            self._control(controls.SessionExpected(commands=expected))

    def handle_result(self, command: c.ExecutionResult) -> None:
        waiting = self._verbs.get(command.command_id)
        if waiting is not None:
            waiting.results.append(command.value)

    def handle_exception(self, command: c.ExecutionException) -> None:
        # session.detached follows and ends the session; pending calls fail with this error.
        self.error = closed_channel(
            command.error_code,
            command.description or "",
            command.class_code or 0,
            command.command_code or 0,
        )

    def handle_reject(self, command: c.MessageReject) -> None:
        for first, last in command.transfers:
            for number in _within(self._publishes, first, last):
                sequence, message = self._publishes.pop(number)
                self._rejected(sequence, message, command.text or "")

    def _rejected(self, sequence: int, message: WireMessage, text: str) -> None:
        properties = Properties(message.raw, message.delivery_mode, message.priority)
        returned = ReturnedMessage(message.body, message.exchange, message.routing_key, properties)
        error = PublishReturned(_NO_ROUTE, text or "NO_ROUTE", returned)
        mandatory = self.confirms.returned(error, message)
        self.confirms.settle(sequence, False, taken=mandatory)

    def handle_accept(self, command: c.MessageAccept) -> None:
        """Do nothing: the completion of our transfers confirms them."""

    def handle_sync(self, command: c.ExecutionSync) -> None:
        """Do nothing: completions are sent for each command."""

    def end(self, error: AMQPError) -> None:
        """End the session: the broker or the connection has ended it."""
        self._closing.succeed(None)
        self._opening.fail(error)
        super().end(error)

    def _end(self, error: AMQPError) -> None:
        verbs, self._verbs, self._last = list(self._last.values()), {}, {}
        self._publishes.clear()
        self._out.clear()
        super()._end(error)
        for waiting in verbs:
            waiting.call.fail(self.error or error)


def _within(waiting: dict[int, Any], first: int, last: int) -> list[int]:
    """Return the pending numbers in a range; they are in order."""
    pending = []
    span = (last - first) % _NUMBERS
    for number in waiting:
        if (number - first) % _NUMBERS <= span:
            pending.append(number)
        elif (number - last) % _NUMBERS < _HALF:
            break
    return pending


def _ranges(numbers: list[int]) -> Ranges:
    """Convert numbers to ranges of consecutive ones."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and (ranges[-1][1] + 1) % _NUMBERS == number:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return tuple(ranges)


def _discarding(message: WireMessage) -> WireMessage:
    """Return the message with a flag that lets the broker drop it if it is unroutable."""
    raw = bytearray(message.raw)
    raw[_DISCARD_AT] |= _DISCARD
    properties = Properties(
        bytes(raw), message.delivery_mode, message.priority, message.has_headers, family=FAMILY_010
    )
    return WireMessage(message.exchange, message.routing_key, properties, message.body)


def _redelivered(raw: bytes) -> bool:
    """True if the delivery properties, which brokers write first, have the redelivered flag."""
    return raw[4:6] == b"\x04\x01" and bool(raw[_DISCARD_AT] & 4)


_CONTROLS: dict[type[Control], Callable[[CoreSession, Any], None]] = {
    controls.SessionAttached: CoreSession.handle_attached,
    controls.SessionCommandPoint: CoreSession.handle_command_point,
    controls.SessionDetached: CoreSession.handle_detached,
    controls.SessionDetach: CoreSession.handle_detach,
    controls.SessionCompleted: CoreSession.handle_completed,
    controls.SessionFlush: CoreSession.handle_flush,
}
_COMMANDS: dict[type[Command], Callable[[CoreSession, Any], None]] = {
    c.ExecutionResult: CoreSession.handle_result,
    c.ExecutionException: CoreSession.handle_exception,
    c.ExecutionSync: CoreSession.handle_sync,
    c.MessageReject: CoreSession.handle_reject,
    c.MessageAccept: CoreSession.handle_accept,
}
