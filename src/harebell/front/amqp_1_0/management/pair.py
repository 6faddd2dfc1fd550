"""The two links of a client to a node of the broker: one for requests, one for answers.

At `/management` both have one name, and the property `paired`; `$cbs` has its own module. The
broker settles its answers when it sends them.

    request   properties  message-id, to (path), subject (method), reply-to ($me)   body: a value
    answer    properties  correlation-id, subject (status)                          body: a value
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from harebell.base.errors import DecodeError
from harebell.base.message import FAMILY_1_0, Properties
from harebell.front.amqp_1_0.delivery import send_in_parts
from harebell.front.amqp_1_0.errors import (
    DECODE_ERROR,
    INVALID_FIELD,
    PRECONDITION_FAILED,
    RESOURCE_LIMIT_EXCEEDED,
    AmqpError,
    LinkError,
    SessionError,
)
from harebell.front.amqp_1_0.management.requests import Answer, Reply, Request, serve
from harebell.front.amqp_1_0.receiving import ReceivingLink
from harebell.front.amqp_1_0.session import near
from harebell.front.limits import (
    MANAGEMENT_CREDIT,
    MANAGEMENT_REQUEST_BYTES,
    MANAGEMENT_UNTAKEN_BYTES,
)
from harebell.kernels.performatives import DRAIN, ECHO
from harebell.wire.v1 import composites
from harebell.wire.v1.composites import Attach
from harebell.wire.v1.sections import (
    DATA,
    SEQUENCE,
    VALUE,
    Sections,
    body_sections,
    encode_message,
    section,
    value_section,
)
from harebell.wire.v1.values import Symbol

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.connection import Connection
    from harebell.front.amqp_1_0.session import Session

ADDRESS = "/management"
_PAIRED = Symbol("paired")
_SETTLED = 1
_HTTP_VERSION = {"http:response": "1.1"}


class Node(Struct, frozen=True):
    """What answers requests.

    Args:
        serve: does what a request asks for: called with the session, the fields of its properties,
            its sections before the body, its body, and what to call with the answer.
        encode: returns an answer as a message, called with the message-id of the request.
        answers: whether a link is for the answers to a request, called with the link, the name of
            the other one and the fields of the properties, which are None for any request.
    """

    serve: Callable[[Session, composites.Properties, Properties, bytes, Reply], None]
    encode: Callable[[Any, Answer], bytes]
    answers: Callable[[AnsweringLink, str, composites.Properties | None], bool]


def attach(session: Session, asked: Attach) -> Attach:
    """Make one of the links to `/management`; return the answer.

    Raises:
        LinkError: invalid-field, it is not one of a pair.
    """
    _check(asked)
    return make(session, asked, _MANAGEMENT, {_PAIRED: True})


def make(
    session: Session, asked: Attach, node: Node, properties: dict[Any, Any] | None = None
) -> Attach:
    """Make one of the links to a node; return the answer.

    Args:
        session: of the link.
        asked: the attach of the client.
        node: what answers.
        properties: of the answer.
    """
    message_max: int = session.connection.message_max
    if asked.role:
        reply_to = getattr(asked.target, "address", None)
        link = AnsweringLink(session, asked.name, asked.handle, node, reply_to)
        session.links[asked.handle] = link
    else:
        requests = RequestLink(session, asked.name, asked.handle, None)
        requests.node = node
        requests.mode = asked.snd_settle_mode
        requests.message_max = message_max = min(message_max, MANAGEMENT_REQUEST_BYTES)
        session.links[asked.handle] = requests
    return Attach(
        asked.name,
        asked.handle,
        not asked.role,
        snd_settle_mode=_SETTLED if asked.role else asked.snd_settle_mode,
        source=asked.source,
        target=asked.target,
        initial_delivery_count=0 if asked.role else None,
        max_message_size=message_max,
        properties=properties,
    )


def _check(asked: Attach) -> None:
    properties = asked.properties or {}
    if properties.get(_PAIRED) is not True:
        text = "Link property 'paired' is not set to boolean value 'true'"
        raise LinkError(INVALID_FIELD, text)
    other = asked.target if asked.role else asked.source
    if getattr(other, "address", None) != ADDRESS:
        what = "target" if asked.role else "source"
        raise LinkError(INVALID_FIELD, f"attach: address of the {what} must be {ADDRESS}, too")


class RequestLink(ReceivingLink):
    """The link by which requests arrive.

    Attributes:
        node: what answers them.
    """

    node: Node

    def parsed(self, data: bytes) -> tuple[Properties, bytes]:
        """Return the sections of a request.

        RabbitMQ takes them in any order and without a body, and its Python client counts on that.
        """
        try:
            return super().parsed(data)
        except LinkError:
            return super().parsed(_in_order(data))

    def take(
        self, number: int, settled: bool, tag: bytes, properties: Properties, body: bytes
    ) -> int:
        """Do what a request asks for.

        Raises:
            LinkError: it is malformed, or there is no link for its answer.
            SessionError: resource-limit-exceeded, the client does not take its answers.
            Refusal: the user lacks a permission.
            Undecided: the backend of the user has to be asked first; nothing is done yet.
        """
        size = len(properties.raw) + len(body)
        if size > self.message_max:
            raise self.too_large(size)
        self.connection.charge(size)
        fields = Sections(properties.raw).properties()
        answering = self._answering(fields)
        untaken = answering.untaken
        if untaken > MANAGEMENT_UNTAKEN_BYTES:
            text = f"{untaken} bytes of answers wait for credit or for the window of the client"
            raise SessionError(RESOURCE_LIMIT_EXCEEDED, text)
        message_id = fields.message_id
        session = self.session

        def reply(answer: Answer) -> None:
            if session.ended or session.links.get(answering.handle) is not answering:
                return
            # What a request has changed is on disk before its client knows of it.
            session.connection.hold_until(session.vhost.recorder.ticket)
            answering.send(message_id, answer)
            if not settled:
                self.unconfirmed += 1
                session.outcomes.accepted(self, number, False)
            session.enlist()

        self.node.serve(session, fields, properties, body, reply)
        return 0

    def _answering(self, fields: composites.Properties) -> AnsweringLink:
        """Return the link for the answer to a request.

        Raises:
            LinkError: precondition-failed.
        """
        for link in answering_links(self.session, self.node, self.name, fields):
            return link
        text = f"no link '{self.name}' by which the answer could be sent: attach it first"
        raise LinkError(PRECONDITION_FAILED, text)

    def renew(self) -> None:
        """Give credit for requests, as far as their answers can leave."""
        self.due = False
        session = self.session
        if session.links.get(self.handle) is not self or self.credit > MANAGEMENT_CREDIT // 2:
            return
        # A client that takes no answers gets no credit for more requests.
        links = answering_links(session, self.node, self.name, None)
        if not any(link.waiting for link in links):
            self.credit = MANAGEMENT_CREDIT
            self.send_state()


def answering_links(
    session: Session, node: Node, name: str, fields: composites.Properties | None
) -> list[AnsweringLink]:
    """Return the links of a session for the answers to a request, or to any of a link."""
    return [
        link
        for link in session.links.values()
        if isinstance(link, AnsweringLink)
        and link.node is node
        and node.answers(link, name, fields)
    ]


class AnsweringLink:
    """The link by which answers leave.

    Args:
        session: the session it is attached to.
        name: of the link, and of the one with the requests.
        handle: of both sides.
        node: what answers.
        reply_to: the address of the client's target.

    Attributes:
        connection: of the session.
        credit: answers that the peer still takes.
        delivery_count: answers that were sent.
        waiting: answers for which the peer has given no credit yet.
        owned: "": no queue was made for the link.
        terminus: None: nothing of the link stays.
    """

    def __init__(self, session: Session, name: str, handle: int, node: Node, reply_to: Any) -> None:
        self.node = node
        self.reply_to = reply_to
        self.session = session
        self.connection: Connection = session.connection
        self.name = name
        self.handle = handle
        self.credit = 0
        self.delivery_count = 0
        self.waiting: deque[bytes] = deque()
        self.owned = ""
        self.terminus = None

    @property
    def untaken(self) -> int:
        """Return the bytes that wait for credit, or for the window of the session."""
        untaken: int = sum([each.left for each in self.session.backlog or ()])
        return untaken + sum([len(each) for each in self.waiting])

    def send(self, message_id: Any, answer: Answer) -> None:
        """Send an answer, or keep it until the peer gives credit."""
        payload = self.node.encode(message_id, answer)
        self.waiting.append(payload)
        self.session.unfinished += len(payload)
        self._send_waiting()

    def _send_waiting(self) -> None:
        session = self.session
        while self.waiting and self.credit > 0:
            number = session.next_tag
            session.next_tag = number + 1
            self.credit -= 1
            self.delivery_count += 1
            payload = self.waiting.popleft()
            session.unfinished -= len(payload)
            send_in_parts(session, self.handle, number, b"", payload, settled=True)

    # --- what a session asks of a link ----------------------------------------------------------

    def attached(self) -> None:
        """Do nothing: the peer gives credit first."""

    def take_flow(self, delivery_count: int, credit: int, flags: int) -> None:
        """Take credit from the peer, then send what waits; -1 is what the peer left out."""
        if credit >= 0:
            limit = near(max(delivery_count, 0), self.delivery_count) + credit
            self.credit = max(limit - self.delivery_count, 0)
        self._send_waiting()
        if flags & DRAIN:
            self.delivery_count += self.credit
            self.credit = 0
        if flags & (DRAIN | ECHO):
            self.session.send_flow(
                *(self.handle, self.delivery_count, self.credit),
                *(len(self.waiting), flags & DRAIN != 0),
            )
        if not self.waiting:
            for link in list(self.session.links.values()):
                if isinstance(link, RequestLink) and link.node is self.node:
                    link.renew()

    def fail(self, error: AmqpError) -> None:
        """Detach the link because of an error."""
        self.session.detach(self, error)
        self.end()

    def check_again(self) -> None:
        """Do nothing: every request is checked by itself."""

    def end(self) -> None:
        """Drop the answers that wait."""
        self.session.unfinished -= sum([len(each) for each in self.waiting])
        self.waiting.clear()

    def close(self) -> None:
        """End the link, as its session ends."""
        self.end()


def _serve(
    session: Session,
    fields: composites.Properties,
    properties: Properties,
    body: bytes,
    reply: Reply,
) -> None:
    """Do what a request to `/management` asks for."""
    if not fields.to or not fields.subject or fields.message_id is None:
        text = "a request needs the properties message-id, to (path) and subject (method)"
        raise LinkError(INVALID_FIELD, text)
    serve(session, Request(fields.subject, fields.to, body_of(body, properties.family)), reply)


def _encode(message_id: Any, answer: Answer) -> bytes:
    properties = composites.Properties(subject=str(answer.status), correlation_id=message_id)
    return encode_message(value_section(answer.body), None, None, properties, _HTTP_VERSION)


def _of_pair(link: AnsweringLink, name: str, fields: composites.Properties | None) -> bool:
    return link.name == name


_MANAGEMENT = Node(_serve, _encode, _of_pair)


def _in_order(data: bytes) -> bytes:
    """Return the sections of a message in their order, with the body null if there is none."""
    parts: list[tuple[int, bytes]] = []
    at = 0
    try:
        while at < len(data):
            code, _, after = section(data, at, len(data))
            parts.append((code, data[at:after]))
            at = after
    except DecodeError:
        return data
    if not any(code in (DATA, SEQUENCE, VALUE) for code, _ in parts):
        parts.append((VALUE, value_section(None)))
    return b"".join(part for _, part in sorted(parts, key=lambda each: each[0]))


def body_of(body: bytes, family: int) -> Any:
    """Return the value of a request: that of its only section.

    Raises:
        LinkError: decode-error, its body is no single value.
    """
    sections = list(body_sections(body, family))
    if family == FAMILY_1_0:
        return body
    if len(sections) == 1 and sections[0].code in (VALUE, DATA):
        return sections[0].value
    raise LinkError(DECODE_ERROR, "the body of a request must be amqp-value")
