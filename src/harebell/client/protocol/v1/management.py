"""Requests to the management node of a broker, in the manner of RabbitMQ 4.

    -->  message-id 1, subject PUT, to /queues/jobs, reply-to $me      amqp-value: the declaration
    <--  correlation-id 1, subject "201"                               amqp-value: the queue

Both links of the pair have one name and the property `paired`. They are attached with the first
request of a session.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from harebell.base.errors import ConditionError
from harebell.base.message import Properties as SectionList
from harebell.client.errors import AMQPError
from harebell.client.protocol.call import Call
from harebell.client.protocol.v1.conditions import refused_request
from harebell.client.protocol.v1.endpoint import Endpoint
from harebell.client.protocol.v1.links import Outgoing, ReceiverLink, SenderLink
from harebell.wire.v1.composites import Properties, Source, Target
from harebell.wire.v1.sections import Sections, body_sections, value_section
from harebell.wire.v1.values import Symbol, Timestamp, ULong

NODE = "/management"
_NAME = "harebell-management"
_REPLIES = "$me"
_ANSWERS_AHEAD = 100
_FIRST_ERROR = 300
_MILLISECONDS = 1000


class Request(NamedTuple):
    """What is asked of the node.

    Args:
        method: GET, PUT, POST or DELETE.
        path: with percent-encoded names.
        body: a map, or None.
    """

    method: str
    path: str
    body: dict[str, Any] | None = None


class Management:
    """The pair of links, and the requests that wait for their answers.

    Args:
        endpoint: the session.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._sender: SenderLink | None = None
        self._receiver: ReceiverLink | None = None
        self._waiting: dict[int, Call[Any]] = {}
        self._held: list[Outgoing] = []
        self._asked = 0

    def ask(self, request: Request) -> Call[Any]:
        """Send a request; the result is the body of its answer.

        Raises:
            TypeError, ValueError: a value of the body has no type in AMQP 1.0.
        """
        number = self._asked = self._asked + 1
        message = Outgoing(_encoded(request, number), settled=True)
        if self._sender is None or self._sender.closed:
            self._attach()
        call: Call[Any] = Call()
        self._waiting[number] = call
        self._held.append(message)
        self._send()
        return call

    def _attach(self) -> None:
        endpoint = self._endpoint
        paired = {Symbol("paired"): True}
        self._sender = endpoint.attach_sender(
            Target(address=NODE), self.lost, _nothing, settled=True, name=_NAME, source=NODE,
            properties=paired,
        )  # fmt: skip
        link = endpoint.receiver(self.lost, self._answered, window=_ANSWERS_AHEAD, name=_NAME)
        self._receiver = endpoint.attach_receiver(
            Source(address=NODE), link, settled=True, target=NODE, properties=paired
        )
        for each in (self._sender, link):
            each.opening.when_done(self._opened)

    def _opened(self, call: Call[Any]) -> None:
        if call.error is not None:
            self.lost(call.error)
        elif isinstance(call.value(), ReceiverLink):
            # The node refuses requests that it has no credit to answer.
            self._endpoint.replenish(call.value())
        self._send()

    def _send(self) -> None:
        sender, receiver = self._sender, self._receiver
        if sender is None or receiver is None or not (sender.attached and receiver.attached):
            return
        held, self._held = self._held, []
        for message in held:
            self._endpoint.post(sender, message)

    def lost(self, error: AMQPError) -> None:
        """Fail all requests: one of the links, or the session, has ended."""
        sender, receiver, waiting = self._sender, self._receiver, self._waiting
        self._sender = self._receiver = None
        self._waiting, self._held = {}, []
        for link in (sender, receiver):
            if link is not None and not link.closed:
                self._endpoint.detach(link)
        for call in waiting.values():
            call.fail(error)

    def _answered(
        self, link: ReceiverLink, number: int, settled: bool, answer: SectionList, body: bytes
    ) -> None:
        self._endpoint.replenish(link)
        try:
            properties = Sections(answer.raw).properties()
            value = next(body_sections(body, answer.family)).value
        except ConditionError as error:
            self.lost(refused_request(501, f"the answer of {NODE} is malformed: {error.text}"))
            return
        call = self._waiting.pop(properties.correlation_id, None)
        if call is None:
            return
        status = properties.subject or ""
        code = int(status) if status.isascii() and status.isdigit() else 0
        if 0 < code < _FIRST_ERROR:
            call.succeed(value)
        else:
            call.fail(refused_request(code, str(value)))


def _encoded(request: Request, number: int) -> bytes:
    properties = Properties(
        message_id=ULong(number), to=request.path, subject=request.method, reply_to=_REPLIES
    )
    return properties.encoded() + value_section(to_value(request.body))


def to_value(value: Any) -> Any:
    """Return a value of a field table as one of AMQP 1.0."""
    if isinstance(value, dict):
        return {key: to_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_value(each) for each in value]
    if isinstance(value, datetime):
        return Timestamp(value.timestamp() * _MILLISECONDS)
    return value


def _nothing(message: Any, outcome: Any) -> None:
    """Do nothing: requests are settled."""
