"""A channel of transitional 0-10: the methods of 0-9, numbered, and completed instead of answered.

    exchange.declare (command 1)  -->
    execution.flush               -->
                                  <--  execution.complete (all up to 1)

Every method except those of the classes connection, channel and execution is a command, and
commands are numbered from 1. A command without a reply in the specification is done when the
broker's execution.complete covers it, which a flush requests; this also confirms a publish.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from harebell.base.message import Message as WireMessage
from harebell.client.errors import AMQPError, UnsupportedByVersion
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import Host, Mode
from harebell.client.protocol.confirms import MANDATORY, ConfirmWaiter
from harebell.client.protocol.v09.channel import CoreChannel
from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods_transitional import ExecutionComplete, ExecutionFlush
from harebell.wire.v09.typed_fields import FieldDialect, encode_typed

T = TypeVar("T")

_UNCOUNTED = ("connection.", "channel.", "execution.")


class TransitionalChannel(CoreChannel):
    """The protocol state of one channel; arguments and verbs as of `CoreChannel`."""

    def __init__(self, host: Host, number: int, *, confirms: bool, keep: bool) -> None:
        super().__init__(host, number, confirms=confirms, keep=keep)
        self._command = 0
        self._until: dict[int, Callable[[], None]] = {}
        self._unfinished: list[Call[Any]] = []
        self._published: dict[int, int] = {}
        self._waits = False

    def send(self, method: m.Method) -> None:
        """Append a method to the output, and count it."""
        arguments = getattr(method, "arguments", None)
        if arguments:
            encoded = encode_typed(arguments, FieldDialect.LETTERS)
            # A recorded method is sent again later: do not change its arguments.
            method = msgspec.structs.replace(method, arguments=encoded)
        super().send(method)
        if not method.NAME.startswith(_UNCOUNTED):
            self._command += 1

    def call(
        self,
        method: m.Method,
        replies: tuple[type[m.Method], ...],
        convert: Callable[[Any], T],
    ) -> Call[T]:
        """Send a method; a call without a reply is done when its command is complete."""
        if isinstance(method, m.ExchangeDeclare) and method.internal:
            raise UnsupportedByVersion(self._host.dialect.version, "internal exchanges")
        dialect = self._host.dialect
        if not dialect.has(type(method)) or dialect.spec.spec_of(method).responses:
            return super().call(method, replies, convert)
        self.check_open()
        method = self._renamed(method)
        self.send(method)
        call: Call[T] = Call()
        self._unfinished.append(call)

        def complete() -> None:
            result = convert(replies[0]())
            self._record(method, result)
            call.succeed(result)

        self._when_complete(complete)
        return call

    def _when_complete(self, then: Callable[[], None]) -> None:
        """Call something when the last command is complete, and request its completion."""
        self._until[self._command] = then
        self.send(ExecutionFlush())

    def select_confirms(self) -> Call[None]:
        """Send nothing: every command is completed in this version."""
        self.mode = Mode.CONFIRM
        return Call.answered(None)

    def publish(
        self, message: WireMessage, flags: int, waiting: ConfirmWaiter, token: int = 0
    ) -> bool:
        """Append a publish to the output; see `CoreChannel.publish`.

        Raises:
            UnsupportedByVersion: it is mandatory, and the version has no basic.return.
        """
        self.check_open()
        if flags & MANDATORY:
            raise UnsupportedByVersion(self._host.dialect.version, "basic.return")
        waits = super().publish(message, flags, waiting, token)
        self._command += 1
        if waits:
            self._published[self._command] = self.confirms.sequence
            if not self._waits:
                # One flush covers all commands before it; later commands need another one.
                self._waits = True
                self.send(ExecutionFlush())
        return waits

    def ack(self, tag: int, multiple: bool = False) -> None:
        """Acknowledge a delivery, or all up to it."""
        super().ack(tag, multiple)
        self._command += 1

    def handle_flush(self, method: ExecutionFlush) -> None:
        """Answer which of the broker's commands are complete: deliveries are when they are read."""
        self.send(ExecutionComplete())

    def handle_complete(self, method: ExecutionComplete) -> None:
        mark = method.cumulative_execution_mark
        for number in [each for each in self._published if each <= mark]:
            self.confirms.settle(self._published.pop(number), False, taken=True)
        for number in [each for each in self._until if each <= mark]:
            self._until.pop(number)()
        self._unfinished = [call for call in self._unfinished if not call.done]
        self._waits = bool(self._published)
        if self._waits:
            self.send(ExecutionFlush())

    def _end(self, error: AMQPError) -> None:
        super()._end(error)
        self._until.clear()
        self._published.clear()
        unfinished, self._unfinished = self._unfinished, []
        for call in unfinished:
            call.fail(self.error or error)

    def on_command(self, method: m.Method) -> bool:
        """Handle a method that only this version has; False for others."""
        handler = _HANDLERS.get(type(method))
        if handler is None:
            return False
        handler(self, method)
        return True


_HANDLERS: dict[type[m.Method], Callable[[TransitionalChannel, Any], None]] = {
    ExecutionFlush: TransitionalChannel.handle_flush,
    ExecutionComplete: TransitionalChannel.handle_complete,
}
