"""A channel of transitional 0-10: the methods of 0-9, counted, and completed instead of answered.

    exchange.declare (command 1)  -->
    execution.flush               -->
                                  <--  execution.complete (all up to 1)

Every method is a command but those of the classes connection, channel and execution, and commands
are numbered from 1. Those that the document gives no reply are done when a mark of the broker says
so, which a flush asks for; a publish is confirmed by its completion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from harebell.base.message import Message as WireMessage
from harebell.client.errors import AMQPError, UnsupportedByVersion
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel import CoreChannel
from harebell.client.protocol.channel_parts import Host, Mode
from harebell.client.protocol.confirms import MANDATORY, ConfirmWaiter
from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods_session import ExecutionComplete, ExecutionFlush
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
            # A method that is recorded is sent again: it keeps its own arguments.
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
        """Send a method; one without a reply is done when it is complete."""
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
        """Have something called when the last command is complete, and ask for that."""
        self._until[self._command] = then
        self.send(ExecutionFlush())

    def select_confirms(self) -> Call[None]:
        """Every command is completed, so nothing has to be asked for."""
        self.mode = Mode.CONFIRM
        call: Call[None] = Call()
        call.succeed(None)
        return call

    def publish(
        self, message: WireMessage, flags: int, waiting: ConfirmWaiter, token: int = 0
    ) -> bool:
        """Append a publish to the output; see `CoreChannel.publish`.

        Raises:
            UnsupportedByVersion: it is mandatory, and there is no basic.return.
        """
        self.check_open()
        if flags & MANDATORY:
            raise UnsupportedByVersion(self._host.dialect.version, "basic.return")
        waits = super().publish(message, flags, waiting, token)
        self._command += 1
        if waits:
            self._published[self._command] = self.confirms.sequence
            if not self._waits:
                # One flush is answered for all that came before it; then there is another one.
                self._waits = True
                self.send(ExecutionFlush())
        return waits

    def ack(self, tag: int, multiple: bool = False) -> None:
        """Acknowledge a delivery, or all up to it."""
        super().ack(tag, multiple)
        self._command += 1

    def handle_flush(self, method: ExecutionFlush) -> None:
        """The broker asks what is complete: deliveries of class basic are when they are read."""
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
        """Take a method that only this version has; whether it was one."""
        handler = _HANDLERS.get(type(method))
        if handler is None:
            return False
        handler(self, method)
        return True


_HANDLERS: dict[type[m.Method], Callable[[TransitionalChannel, Any], None]] = {
    ExecutionFlush: TransitionalChannel.handle_flush,
    ExecutionComplete: TransitionalChannel.handle_complete,
}
