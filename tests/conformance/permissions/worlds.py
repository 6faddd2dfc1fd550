"""Brokers in several states, and a user's session of every version who does one thing there.

What the session sends is octets over the real front; what comes back is looked through for a
refusal, of the channel, the session or the connection.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from harebell.auth.permissions import ACTIONS, Permissions
from harebell.auth.topics import TopicPermission
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from harebell.wire.v010.composites import Command, Composite
from harebell.wire.v09 import methods as m
from harebell.wire.v09.method import Method
from harebell.wire.v09.methods_transitional import MessageReject
from harebell.wire.v09.spec import ProtocolSpec
from harebell.wire.v1 import composites as one
from harebell.wire.v1.sections import Sections, body_sections, data_section, encode_message, split
from harebell.wire.v1.sections import value_section as value
from harebell.wire.v1.values import Symbol
from tests.conformance import raw
from tests.conformance.frames import BODY, HEADER, METHOD, frame
from tests.conformance.permissions.matrix import FINAL, NAMES, ONE, SPECS, Need
from tests.conformance.sites import MemorySite
from tests.conformance.v010.raw import Peer010, assembly, octets_of
from tests.conformance.v010t.peer import Peer as PeerT
from tests.conformance.v08.peer import Peer8, Peer9
from tests.conformance.v1.raw import Peer1

_PEERS = {"0-8": Peer8, "0-9": Peer9, "0-9-1": raw.Peer, "transitional 0-10": PeerT}
KEY = "k"
"""The routing key of everything that is published and bound here."""


class Content(NamedTuple):
    """A method with a content.

    Args:
        method: the method or command; None for a transfer of 1.0 on its first link.
        class_id: of the content header.
        properties: its property list; structs for 0-10, sections for 1.0.
        body: the body.
    """

    method: Any
    class_id: int = 60
    properties: Any = b"\0\0"
    body: bytes = b"body"


class Request(NamedTuple):
    """A request to the management node of 1.0.

    Args:
        method: as in HTTP.
        path: what it is about.
        body: the value of its body.
    """

    method: str
    path: str
    body: Any = None


class Message1(NamedTuple):
    """A message of 1.0.

    Args:
        to: the address in its properties; None for none.
        handle: of the link that it is sent on.
        annotations: of the message.
        state: of the delivery.
        user: the property user-id; None for none.
    """

    to: str | None = None
    handle: int = 0
    annotations: dict[str, Any] | None = None
    state: Any = None
    user: bytes | None = None


_ANSWERS, _REQUESTS, _CONTROL = 100, 101, 102
_PAIRED = {Symbol("paired"): True}
_CODES = {
    "amqp:link:message-size-exceeded": 311,
    "amqp:unauthorized-access": 403,
    "amqp:not-found": 404,
    "amqp:resource-locked": 405,
    "amqp:precondition-failed": 406,
    "amqp:invalid-field": 501,
    "amqp:resource-limit-exceeded": 506,
    "amqp:not-allowed": 530,
    "amqp:not-implemented": 540,
}
"""The code of 0-9-1 for a condition."""
Sent = Any
"""A method, a command, a Content, the payload of a method; in 1.0 a performative, or what follows.

A Request, a Message1, or a composite for the coordinator.
"""


class Refused(NamedTuple):
    """How the broker refused something: reply code and text."""

    code: int
    text: str


def empty() -> MemorySite:
    """A broker without anything of ours."""
    return MemorySite()


def furnished(kind: str = "fanout") -> MemorySite:
    """A broker with queue q, and exchanges x, y and other of a type."""
    site = MemorySite()
    vhost = site.broker.vhosts["/"]
    vhost.declare_queue("q")
    for name in ("x", "y", "other"):
        vhost.declare_exchange(name, kind)
    return site


def different() -> MemorySite:
    """A broker where everything has one of the names, and is of other kinds or somebody else's."""
    site = MemorySite()
    vhost = site.broker.vhosts["/"]
    for name in ("q", "new"):
        vhost.declare_queue(name, exclusive=True, owner=object())
    for name in ("x", "y", "other", "fresh"):
        vhost.declare_exchange(name, "topic", durable=True, internal=True)
    vhost.bind("x", vhost.exchange("y"), KEY, {})
    return site


def allow(site: MemorySite, needs: list[Need]) -> None:
    """Give the user exactly these permissions, and let what was remembered go."""
    configure, write, read = (
        "|".join(f"^{need.name}$" for need in needs if need.action == action) for action in ACTIONS
    )
    user = site.users.get("guest")
    assert user is not None
    user.permissions["/"] = Permissions(configure, write, read)
    site.broker.vhosts["/"].router.changed()


def allow_topics(site: MemorySite, pattern: str) -> None:
    """The user may use, at the exchanges that rows name, only routing keys that match."""
    user = site.users.get("guest")
    assert user is not None
    topic = TopicPermission(pattern, pattern, "guest", "/")
    exchanges = [name for kind, name in NAMES.values() if kind == "exchange"]
    user.topic_permissions["/"] = dict.fromkeys(exchanges, topic)
    site.broker.vhosts["/"].router.changed()


class Session:
    """A session of a user who may do everything when it begins.

    Args:
        site: the broker.
        version: see `matrix.VERSIONS`.

    Attributes:
        returned: messages that came back as unroutable, or were rejected.
        deliveries: messages that came, in 1.0.
        transaction: the id of the one that was declared last, in 1.0.
    """

    def __init__(self, site: MemorySite, version: str) -> None:
        self.returned = self.deliveries = 0
        self.transaction = b""
        self._wire = site.connect()
        self._one = version == ONE
        self._final = version == FINAL
        self._spec: Any = SPECS.get(version)
        if self._one:
            self._peer: Any = Peer1(site, self._wire).open().begin()
            self._paired = self._coordinated = False
        elif self._final:
            self._peer = Peer010(site, self._wire).open().attach()
        else:
            self._peer = _PEERS[version](site, self._wire).open()

    def do(self, *sent: Sent) -> Refused | None:
        """Send something; what it was refused with, if it was."""
        if self._one:
            for each in sent:
                self._say(each)
            return self._refusal_of_1_0()
        for each in sent:
            self._wire.write(self._octets(each))
        return self._refusal()

    def end(self) -> None:
        """Close the connection without a word."""
        self._wire.drop()

    # --- 1.0 ------------------------------------------------------------------------------------

    def _say(self, sent: Sent) -> None:
        peer = self._peer
        if isinstance(sent, Request):
            if not self._paired:
                fields: dict[str, Any] = {
                    "name": "pair",
                    "snd_settle_mode": 1,
                    "properties": _PAIRED,
                }
                node = (one.Source("/management"), one.Target("/management"))
                peer.send(
                    one.Attach(**fields, handle=_ANSWERS, role=True, source=node[0], target=node[1])
                )
                peer.send(
                    one.Attach(
                        **fields, handle=_REQUESTS, source=node[0], target=node[1],
                        initial_delivery_count=0,
                    )
                )  # fmt: skip
                peer.give(_ANSWERS, 1_000)
                self._paired = True
            properties = one.Properties("1", to=sent.path, subject=sent.method)
            message = encode_message(value(sent.body), None, None, properties)
            peer.transfer_payload(_REQUESTS, message, settled=True)
        elif isinstance(sent, Message1):
            properties = one.Properties(to=sent.to, user_id=sent.user)
            payload = encode_message(data_section(b"body"), None, sent.annotations, properties)
            peer.transfer_payload(sent.handle, payload, state=sent.state)
        elif isinstance(sent, Content):
            peer.transfer(0, sent.body, sections=sent.properties)
        elif isinstance(sent, one.Declare | one.Discharge):
            if not self._coordinated:
                target = one.Coordinator()
                asked = one.Attach("t", _CONTROL, source=one.Source(), target=target)
                asked.initial_delivery_count = 0
                peer.send(asked)
                self._coordinated = True
            peer.transfer_payload(_CONTROL, value(sent))
        else:
            peer.send(sent)

    def _refusal_of_1_0(self) -> Refused | None:
        refused = None
        while (found := self._peer.maybe()) is not None:
            told = found.value
            if isinstance(told, one.Transfer):
                self.deliveries += told.handle != _ANSWERS
                if told.handle == _ANSWERS:
                    refused = refused or _refusal_in(found.payload)
            elif isinstance(told, one.Disposition) and isinstance(told.state, one.Declared):
                self.transaction = told.state.txn_id
            elif isinstance(told, one.Disposition) and told.role:
                self.returned += isinstance(told.state, one.Released | one.Rejected)
            elif isinstance(told, one.Detach | one.End | one.Close) and told.error is not None:
                code = _CODES.get(told.error.condition, 0)
                assert code, told
                refused = refused or Refused(code, told.error.description or "")
        assert not self._peer.ended, "the broker ended the connection"
        return refused

    # --- the other versions ---------------------------------------------------------------------

    def _octets(self, sent: Sent) -> bytes:
        if self._final:
            return _final(sent)
        return _classic(sent, self._spec)

    def _refusal(self) -> Refused | None:
        if self._final:
            while (found := self._peer.maybe()) is not None:
                value = found.value
                self.returned += isinstance(value, c.MessageReject)
                if isinstance(value, c.ExecutionException):
                    return Refused(value.error_code, value.description or "")
                if isinstance(value, k.ConnectionClose):
                    return Refused(value.reply_code, value.reply_text or "")
            assert not self._peer.ended, "the broker ended the connection"
            return None
        while (found := self._peer._frame(0.0)) is not None:
            if found.kind != METHOD:
                continue
            method = self._spec.decode(found.payload)
            self.returned += isinstance(method, m.BasicReturn | m.BasicReject | MessageReject)
            if isinstance(method, m.ChannelClose | m.ConnectionClose):
                return Refused(method.reply_code, method.reply_text)
        assert not self._peer.ended, "the broker ended the connection"
        return None


def _refusal_in(answer: bytes) -> Refused | None:
    """What an answer of the management node refuses."""
    raw, body, family = split(answer)
    status = int(Sections(raw).properties().subject or "0")
    (section,) = body_sections(body, family)
    return Refused(status, str(section.value)) if status >= 400 else None


def _classic(sent: Sent, spec: ProtocolSpec) -> bytes:
    if isinstance(sent, bytes):
        return frame(METHOD, 1, sent)
    if isinstance(sent, Method):
        return frame(METHOD, 1, spec.encode(sent))
    header = sent.class_id.to_bytes(2) + bytes(2) + len(sent.body).to_bytes(8) + sent.properties
    octets = frame(METHOD, 1, spec.encode(sent.method)) + frame(HEADER, 1, header)
    return octets + (frame(BODY, 1, sent.body) if sent.body else b"")


def _final(sent: Sent) -> bytes:
    command, header, body = sent, [], b""
    if isinstance(sent, Content):
        command, header, body = sent.method, list(sent.properties), sent.body
        assert all(isinstance(each, Composite) for each in header)
        return assembly(command, header, body, 1, True, 65535)
    assert isinstance(command, Command), command
    return octets_of(command, 1, True)
