"""What every version can do has the same outcome in all: declare, bind, purge, delete, publish.

The methods are those that `test_doors` compares with HTTP. Each is done in two brokers that have
the same: by a session of 0-9-1 in one, and by one of another version in the other.
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from harebell.auth.permissions import Permissions
from harebell.auth.topics import TopicPermission
from harebell.front.amqp_1_0.management.values import digest
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import structs
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.typed_fields import FieldDialect
from harebell.wire.v1 import composites as one
from harebell.wire.v1.sections import encode_message
from tests.conformance.permissions.matrix import FINAL, ONE, VERSIONS, methods_of
from tests.conformance.permissions.uses import target
from tests.conformance.permissions.worlds import (
    Content,
    Message1,
    Refused,
    Request,
    Sent,
    Session,
)
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.transfers import encoded
from tests.unit.admin.test_doors import CASES
from tests.unit.model.things import message

REFERENCE, T = "0-9-1", "transitional 0-10"
OLD, TEN = ("0-8", "0-9"), (T, FINAL)
OTHERS = tuple(version for version in VERSIONS if version != REFERENCE)
STRICT = (*OLD, *TEN)
"""Versions in which what is deleted or unbound must exist."""
RIGHTS = {pattern: (pattern,) * 3 for pattern in (".*", "^mine", "")}
"""The same pattern for configure, write and read."""
METHODS = [case.method for case in CASES]


ANOTHER_TYPE = "another type is 507 in 0-8, 530 in later ones"
DEFAULT = "the default exchange cannot be named"
IN_ORDER = "other checks come first"
LINE_ENDS = "0-10 keeps line ends in names, and 1.0 refuses them, as RabbitMQ does"
MISSING = "what is deleted or unbound must exist"
NO_CHANGE = "a second declaration does not change what there is, and compares less"
STATUSES = "the management node of 1.0 has statuses and texts of its own, as RabbitMQ's"
TYPES = "the field tables of these versions have no such type"
UNKNOWN_ARGUMENT = "0-10 refuses arguments that it does not know"
UNKNOWN_TYPE = "503 in older versions, 404 in 0-10"
DIFFERENCES: dict[str, list[tuple[tuple[str, ...], str, int, int]]] = {
    ANOTHER_TYPE: [
        (("0-8",), "exchange.declare", 406, 507),
        (("0-9", *TEN), "exchange.declare", 406, 530),
    ],
    DEFAULT: [
        ((*OLD, T), "queue.bind", 403, 530),
        ((T,), "queue.unbind", 403, 530),
        ((T,), "exchange.delete", 403, 530),
        ((FINAL,), "queue.bind", 403, 542),
        ((FINAL,), "queue.unbind", 403, 542),
        ((FINAL,), "exchange.delete", 403, 542),
    ],
    "names of the broker's own are 530": [
        ((FINAL,), "exchange.delete", 403, 530),
        (TEN, "queue.declare", 403, 530),
    ],
    "an invalid binding is 530": [(OLD, "queue.bind", 406, 530)],
    "a wrong selector is an illegal argument": [((FINAL,), "queue.bind", 406, 531)],
    IN_ORDER: [
        (TEN, "queue.bind", 404, 404),
        (TEN, "queue.bind", 404, 405),
        (TEN, "queue.declare", 403, 403),
        ((FINAL,), "exchange.declare", 406, 403),
        ((ONE,), "queue.declare", 403, 400),
        ((ONE,), "exchange.declare", 403, 400),
        ((ONE,), "exchange.declare", 403, 403),
    ],
    MISSING: [
        (STRICT, "queue.delete", 0, 404),
        (STRICT, "exchange.delete", 0, 404),
        (TEN, "queue.unbind", 0, 404),
        (TEN, "queue.unbind", 0, 405),
        ((T,), "queue.unbind", 0, 530),
    ],
    NO_CHANGE: [
        (STRICT, "queue.declare", 406, 0),
        (STRICT, "exchange.declare", 406, 0),
        ((*OLD, T), "queue.declare", 406, 406),
    ],
    TYPES: [
        ((*OLD, T), "queue.declare", 0, 0),
        ((*OLD, T), "exchange.declare", 0, 0),
    ],
    LINE_ENDS: [
        ((FINAL,), "queue.declare", 0, 0),
        ((ONE,), "queue.declare", 0, 400),
        ((ONE,), "exchange.declare", 0, 400),
    ],
    STATUSES: [
        ((ONE,), name, code, status)
        for code, status, names in (
            (405, 400, ("queue.declare", "queue.delete", "queue.purge", "queue.bind")),
            (405, 400, ("queue.unbind",)),
            (406, 400, ("queue.declare", "exchange.declare", "queue.bind", "exchange.bind")),
            (406, 409, ("queue.declare", "exchange.declare", "queue.bind")),
            (404, 400, ("queue.bind", "exchange.bind")),
            (403, 403, ("queue.declare", "queue.bind", "queue.unbind", "exchange.delete")),
            (403, 403, ("exchange.bind", "exchange.unbind")),
        )
        for name in names
    ],
    "an equal binding has other arguments, too": [((FINAL,), "queue.bind", 0, 0)],
    UNKNOWN_ARGUMENT: [
        ((FINAL,), name, code, 540)
        for name, code in (
            ("queue.declare", 0),
            ("exchange.declare", 0),
            ("exchange.declare", 406),
            ("queue.bind", 0),
            ("queue.bind", 406),
        )
    ],
    UNKNOWN_TYPE: [
        ((*OLD, T), "exchange.declare", 406, 503),
        ((FINAL,), "exchange.declare", 406, 404),
    ],
}
"""Why the reply codes of 0-9-1 and others differ, or with equal codes texts or effects."""


def final(method: m.Method) -> Any:
    """The command of 0-10 that means the same; None without one."""
    if isinstance(method, m.QueueBind | m.QueueUnbind):
        kind = c.ExchangeBind if isinstance(method, m.QueueBind) else c.ExchangeUnbind
        fields = {"queue": method.queue, "exchange": method.exchange}
        found = kind(**fields, binding_key=method.routing_key)
        if isinstance(method, m.QueueBind):
            found.arguments = method.arguments
        return found
    kind = {
        "queue.declare": c.QueueDeclare,
        "queue.delete": c.QueueDelete,
        "queue.purge": c.QueuePurge,
        "exchange.declare": c.ExchangeDeclare,
        "exchange.delete": c.ExchangeDelete,
    }.get(method.NAME)
    if kind is None or getattr(method, "internal", False):
        return None
    names = [name for name in kind.__struct_fields__ if hasattr(method, name)]
    return kind(**{name: getattr(method, name) for name in names if name != "alternate_exchange"})


def request(method: m.Method) -> Request | None:
    """The request of 1.0 that means the same; None without one."""
    match method:
        case m.QueueDeclare(passive=False):
            flags = ("durable", "exclusive", "auto_delete", "arguments")
            fields = {name: getattr(method, name) for name in flags}
            return Request("PUT", f"/queues/{quote(method.queue, safe='')}", fields)
        case m.QueueDelete(if_unused=False, if_empty=False):
            return Request("DELETE", f"/queues/{quote(method.queue, safe='')}")
        case m.QueuePurge():
            return Request("DELETE", f"/queues/{quote(method.queue, safe='')}/messages")
        case m.ExchangeDeclare(passive=False):
            flags = ("type", "durable", "auto_delete", "internal", "arguments")
            fields = {name: getattr(method, name) for name in flags}
            return Request("PUT", f"/exchanges/{quote(method.exchange, safe='')}", fields)
        case m.ExchangeDelete(if_unused=False):
            return Request("DELETE", f"/exchanges/{quote(method.exchange, safe='')}")
        case m.QueueBind() | m.ExchangeBind():
            return Request("POST", "/bindings", _binding(method))
        case m.QueueUnbind() | m.ExchangeUnbind():
            end = _binding(method)
            key, kind = end["binding_key"], "dstq" if "destination_queue" in end else "dste"
            name = end.get("destination_queue", end.get("destination_exchange"))
            args = digest(end["arguments"]) if end["arguments"] else ""
            parts = {"src": end["source"], kind: name, "key": key, "args": args}
            text = ";".join(f"{name}={quote(value, safe='')}" for name, value in parts.items())
            return Request("DELETE", f"/bindings/{text}")
    return None


def _binding(method: Any) -> dict[str, Any]:
    if isinstance(method, m.QueueBind | m.QueueUnbind):
        ends = {"source": method.exchange, "destination_queue": method.queue}
    else:
        ends = {"source": method.source, "destination_exchange": method.destination}
    return {**ends, "binding_key": method.routing_key, "arguments": dict(method.arguments or {})}


def sent_by(version: str, method: m.Method) -> Any:
    if version == ONE:
        return request(method)
    if version == FINAL:
        return final(method)
    if method.NAME not in methods_of(version) or getattr(method, "internal", False):
        return None
    return method


def site_with(rights: tuple[str, str, str]) -> MemorySite:
    site = MemorySite()
    vhost = site.broker.vhosts["/"]
    for name in ("mine-q", "other-q"):
        vhost.declare_queue(name, durable=True).publish(message(b"kept", name))
    vhost.declare_queue("alone", exclusive=True, owner=object())
    kinds = {"x": "direct", "t": "topic", "h": "headers", "c": "x-consistent-hash"}
    for letter, kind in kinds.items():
        vhost.declare_exchange(f"mine-{letter}", kind, durable=True)
    vhost.declare_exchange("other-x", "fanout", durable=True)
    for source, key in (("mine-x", "a"), ("other-x", "a"), ("mine-t", "a"), ("mine-t", "b")):
        vhost.bind(source, vhost.queues["mine-q"], key)
    vhost.bind("mine-x", vhost.queues["alone"], "a")
    vhost.bind("mine-x", vhost.exchanges["other-x"], "a")
    user = site.users.get("guest")
    assert user is not None
    user.permissions["/"] = Permissions(*rights)
    return site


def state(site: MemorySite) -> Any:
    vhost = site.broker.vhosts["/"]
    return (
        {
            name: (
                *(queue.kind, queue.durable, queue.auto_delete),
                *(dict(queue.arguments), queue.ready_count()),
            )
            for name, queue in vhost.queues.items()
        },
        {
            name: (each.KIND, each.durable, each.auto_delete, dict(each.arguments))
            for name, each in vhost.exchanges.items()
        },
        sorted(
            (each.source.name, each.destination.name, each.routing_key, str(each.arguments))
            for each in vhost.bindings()
        ),
    )


def outcome(refused: Refused | None, version: str = REFERENCE) -> tuple[int, str]:
    if refused is None:
        return 0, ""
    if version == ONE:
        return refused
    _, dash, text = refused.text.partition(" - ")
    return refused.code, text if dash else refused.text.partition(": ")[2]


def done(site: MemorySite, version: str, sent: Any) -> tuple[int, str]:
    """Let a session of its own do it."""
    session = Session(site, version)
    found = outcome(session.do(sent), version)
    session.end()
    return found


@pytest.mark.parametrize("version", OTHERS)
def test_versions_differ_only_where_they_have_a_reason(version: str) -> None:
    seen: set[tuple[str, int, int]] = set()
    for rights in RIGHTS.values():
        reference, other = site_with(rights), site_with(rights)
        before = state(reference)
        for method in METHODS:
            sent = sent_by(version, method)
            if sent is None:
                continue
            by_reference = done(reference, REFERENCE, method)
            by_other = done(other, version, sent)
            after = state(other)
            if by_other[0]:
                assert after == before, (method, by_other)
            if by_other != by_reference or after != state(reference):
                seen.add((method.NAME, by_reference[0], by_other[0]))
            if after != before or state(reference) != before:
                reference, other = site_with(rights), site_with(rights)
    rows = [row for found in DIFFERENCES.values() for row in found]
    assert seen == {row[1:] for row in rows if version in row[0]}


class Pub(NamedTuple):
    """A publish.

    Args:
        key: the routing key.
        exchange: where to.
        properties: as class basic names them.
        body: the body.
    """

    key: str = "q"
    exchange: str = ""
    properties: dict[str, Any] = {}
    body: bytes = b"body"


def _headers(**headers: Any) -> dict[str, Any]:
    return {"headers": headers}


BODY_MAX = 100
PUBLISHES = [
    *(Pub(), Pub("nowhere"), Pub("q", "missing"), Pub("q", "inside"), Pub("q", "later")),
    *(Pub("mine.1", "topics"), Pub("others.1", "topics"), Pub("other", "alternate")),
    *(Pub("mine.1", "topics", _headers(CC=[key])) for key in ("mine.2", "others.2")),
    *(Pub("mine.1", "topics", _headers(BCC=[key])) for key in ("mine.2", "others.2")),
    *(Pub(key) for key in ("full", "drops", "quorum", "stream", "alone", "k" * 255)),
    *(Pub(body=b"x" * size) for size in (0, BODY_MAX, BODY_MAX + 1)),
    *(Pub(properties={"expiration": text}) for text in ("60000", "0", "-1", "abc", "", "1.5")),
    *(Pub(properties={"expiration": "9" * digits}) for digits in (11, 12, 13, 21)),
    *(Pub(properties={"user_id": name}) for name in ("guest", "ann", "")),
    *(Pub(properties={"delivery_mode": mode}) for mode in (0, 1, 2, 3, 255)),
    *(Pub(properties={"priority": level}) for level in (0, 9, 255)),
    *(Pub(properties={"timestamp": at}) for at in (0, 1_700_000_000, 1_700_000_000_000)),
    Pub(properties={"reply_to": "amq.rabbitmq.reply-to"}),
    Pub(properties={"content_type": "a/b", "correlation_id": "c", "message_id": "m"}),
    *(Pub(properties=_headers(CC=given)) for given in (["other"], "other", 5, [1, "other"], [])),
    *(Pub(properties=_headers(BCC=given)) for given in (["other"], "other", {"a": 1})),
    *(Pub(properties=_headers(x=given)) for given in (1, -1, 2**40, "s", b"\xff", {"a": "b"})),
    *(Pub(properties=_headers(x=given)) for given in (None, True, 0.5, [1, "a"], [[1], {}])),
    Pub("", "matching", _headers(x=1)),
    Pub("", "matching", _headers(x="1")),
    *(Pub("q", "later", _headers(**{"x-delay": given})) for given in (5, "5", "soon", -5, 2**40)),
]
TOPIC = TopicPermission("^mine", "^mine", "guest", "/")
WRITERS = {"all": (".*", {}), "none": ("", {}), "topic": (".*", {"topics": TOPIC, "": TOPIC})}
PUBLISH_DIFFERENCES: dict[str, list[tuple[str, str, str, int, int]]] = {
    "a message that is too large is 311, the code of the class, or 506 in 0-10": [
        (T, "transfer", "body", 406, 311),
        (FINAL, "transfer", "body", 406, 506),
    ],
    "class message looks at the exchange first": [(T, "transfer", "body", 406, 403)],
    "a transfer that a full queue refuses is rejected, or an exception in 0-10": [
        (T, "transfer", "full", 0, 0),
        (FINAL, "transfer", "full", 0, 506),
        (ONE, "transfer", "full", 0, 0),
    ],
    "a time to live of 0 is none where the field is always there": [
        (T, "transfer", "expiration", 0, 0)
    ],
    "a time to live is a number, and has a text of its own": [
        (T, "transfer", "expiration", 406, 406)
    ],
    "0-10 takes any time to live": [(FINAL, "transfer", "expiration", 406, 0)],
    "an internal exchange is not-allowed in 0-10": [(FINAL, "transfer", "inside", 403, 530)],
    "rule authentication of 0-10: unauthorized-access": [(FINAL, "transfer", "user_id", 406, 403)],
    "1.0 has conditions of its own, as RabbitMQ's": [
        (ONE, "transfer", "user_id", 406, 403),
        (ONE, "transfer", "CC", 406, 501),
        (ONE, "transfer", "inside", 403, 403),
    ],
    "a list of further keys has no numbers in 1.0": [(ONE, "transfer", "CC", 0, 501)],
    "a link to a queue that does not exist is refused": [
        (ONE, "transfer", key, 0, 404) for key in ("nowhere", "k" * 255)
    ],
    "the size of a message of 1.0 is that of all its sections": [
        (ONE, "transfer", "body", 406, 311),
        (ONE, "transfer", "body", 406, 403),
        (ONE, "transfer", "q", 0, 311),
    ],
    "a reply-to is an address in 1.0": [(ONE, "transfer", "reply_to", 406, 0)],
    "0-10 has invalid-argument": [
        (FINAL, "transfer", "CC", 406, 542),
        (FINAL, "transfer", "BCC", 406, 542),
    ],
}
"""Why the outcome of a publish differs: version, way, subject, code of 0-9-1 and of the other."""
_BASIC = [(version, "publish") for version in (REFERENCE, *OLD, T)]
IN_TRANSACTIONS = [*_BASIC, *((version, "transfer") for version in (T, FINAL, ONE))]
WAYS = IN_TRANSACTIONS[1:]


def _basic(pub: Pub, mandatory: bool) -> Sent:
    raw = encode_properties(BasicProperties(**pub.properties))
    return Content(m.BasicPublish(pub.exchange, pub.key, mandatory=mandatory), 60, raw, pub.body)


def _transfer(version: str, pub: Pub, mandatory: bool) -> Sent | None:
    """The transfer that means the same; None if there is none."""
    if version == ONE:
        # A message that no queue gets always comes back.
        return _message(pub) if mandatory else None
    given = dict(pub.properties)
    expiration = given.pop("expiration", None)
    if expiration is not None and (not expiration.isdecimal() or len(expiration) > 20):
        return None
    if "message_id" in given or "reply_to" in given:
        return None
    ttl = None if expiration is None else int(expiration)
    headers = given.pop("headers", {})
    if version == T:
        return encoded(
            pub.key,
            pub.body,
            destination=pub.exchange,
            reject_unroutable=mandatory,
            ttl=ttl or 0,
            application_headers=headers,
            dialect=FieldDialect.TYPED,
            **given,
        )
    delivery = structs.DeliveryProperties(
        discard_unroutable=not mandatory,
        routing_key=pub.key,
        ttl=ttl,
        **{name: given.pop(name) for name in _DELIVERY if name in given},
    )
    if "user_id" in given:
        given["user_id"] = given["user_id"].encode()
    fields = structs.MessageProperties(application_headers=headers, **given)
    return Content(c.MessageTransfer(pub.exchange), 4, (delivery, fields), pub.body)


_DELIVERY = ("priority", "delivery_mode", "timestamp")


def _message(pub: Pub) -> list[Sent] | None:
    """A link of 1.0 and the message that means the same; None if there is none."""
    given = dict(pub.properties)
    headers = given.pop("headers", {})
    expiration = given.pop("expiration", None)
    mode, priority = given.pop("delivery_mode", 0), given.pop("priority", None)
    if not (pub.exchange or pub.key) or not isinstance(expiration, str | None):
        return None
    if expiration is not None and (not expiration.isdecimal() or int(expiration) >= 1 << 32):
        return None
    if any(isinstance(value, list | dict) for name, value in headers.items() if name != "CC"):
        return None
    if "BCC" in headers:
        return None
    header = one.Header(mode == 2, priority, None if expiration is None else int(expiration))
    annotations = {name: value for name, value in headers.items() if name.startswith("x-")}
    if "CC" in headers:
        annotations["x-cc"] = headers["CC"]
    others = {name: value for name, value in headers.items() if name not in (*annotations, "CC")}
    if "user_id" in given:
        given["user_id"] = given["user_id"].encode()
    if "timestamp" in given:
        given["creation_time"] = given.pop("timestamp") * 1_000
    sections = encode_message(b"", header, annotations or None, one.Properties(**given), others)
    key = quote(pub.key, safe="")
    address = f"/exchanges/{pub.exchange}/{key}" if pub.exchange else f"/queues/{key}"
    return [target(address), Content(None, properties=sections, body=pub.body)]


def _furnished(right: str) -> MemorySite:
    site = MemorySite(message_max=BODY_MAX)
    vhost = site.broker.vhosts["/"]
    full = {"x-max-length": 1, "x-overflow": "reject-publish"}
    for name, arguments in (
        *(("q", {}), ("other", {}), ("full", full), ("drops", {"x-max-length": 1})),
        *(("quorum", {"x-queue-type": "quorum"}), ("stream", {"x-queue-type": "stream"})),
    ):
        vhost.declare_queue(name, durable=True, arguments=arguments)
    vhost.declare_queue("alone", exclusive=True, owner=object())
    for name in ("full", "drops"):
        vhost.queues[name].publish(message(b"before", name))
    vhost.declare_exchange("inside", "fanout", internal=True)
    vhost.declare_exchange("topics", "topic")
    vhost.declare_exchange("matching", "headers")
    vhost.declare_exchange("alternate", "direct", arguments={"alternate-exchange": "topics"})
    vhost.declare_exchange("later", "x-delayed-message", arguments={"x-delayed-type": "direct"})
    for source, key in (("topics", "#"), ("later", "q")):
        vhost.bind(source, vhost.queues["q"], key)
    vhost.bind("matching", vhost.queues["q"], "", {"x": 1})
    user = site.users.get("guest")
    assert user is not None
    write, topics = WRITERS[right]
    user.permissions["/"] = Permissions(".*", write, ".*")
    user.topic_permissions["/"] = topics
    return site


def _arrived(site: MemorySite) -> Any:
    """What is in the queues, and what is delayed."""
    vhost = site.broker.vhosts["/"]
    found: dict[str, list[Any]] = {}
    for name, queue in vhost.queues.items():
        found[name] = [queue.ready_count()] if name == "stream" else []
        while name != "stream" and (got := queue.get()) is not None:
            sent = got[0]
            found[name].append((sent.exchange, sent.routing_key, sent.body, sent.due > 0))
    later = vhost.exchanges["later"]
    return found, later.delayed  # type: ignore[attr-defined]


def _subject(pub: Pub) -> str:
    """What is special about a publish: a header, a property, the size, the exchange or the key."""
    headers = pub.properties.get("headers", {})
    size = "body" if len(pub.body) > BODY_MAX else ""
    found: list[str] = [*headers, *pub.properties, size, pub.exchange, pub.key]
    return next(filter(None, found))


def _published(right: str, version: str, sent: Sent) -> Any:
    """What is said to a publish, whether it came back, and what is there then."""
    site = _furnished(right)
    session = Session(site, version)
    refused = outcome(session.do(*(sent if isinstance(sent, list) else [sent])), version)
    session.end()
    return refused, session.returned, _arrived(site)


@cache
def _expected(right: str, number: int, mandatory: bool) -> Any:
    return _published(right, REFERENCE, _basic(PUBLISHES[number], mandatory))


@pytest.mark.parametrize(("version", "way"), WAYS)
def test_a_publish_differs_only_where_a_version_has_a_reason(version: str, way: str) -> None:
    seen = set()
    for right, (number, pub), mandatory in product(WRITERS, enumerate(PUBLISHES), (False, True)):
        sent = _basic(pub, mandatory) if way == "publish" else _transfer(version, pub, mandatory)
        if sent is None:
            continue
        found, expected = _published(right, version, sent), _expected(right, number, mandatory)
        if found != expected:
            seen.add((_subject(pub), expected[0][0], found[0][0]))
    rows = [row for rows in PUBLISH_DIFFERENCES.values() for row in rows]
    assert seen == {row[2:] for row in rows if row[:2] == (version, way)}


@pytest.mark.parametrize(("version", "way"), IN_TRANSACTIONS)
@pytest.mark.parametrize("bound", [False, True])
def test_a_message_of_a_transaction_is_in_a_history_from_its_commit_on(
    version: str, way: str, bound: bool
) -> None:
    site = MemorySite()
    vhost = site.broker.vhosts["/"]
    vhost.declare_exchange("history", "x-recent-history")
    names = iter(("first", "second", "third", "fourth"))

    def kept() -> int:
        """How many messages a new binding gets."""
        queue = vhost.declare_queue(next(names))
        vhost.bind("history", queue, "")
        return queue.ready_count()

    if bound:
        kept()
    pub = Pub("k", "history")
    session = Session(site, version)
    if version == ONE:
        assert session.do(target("/exchanges/history/k")) is None
        for fail in (True, False):
            assert session.do(one.Declare()) is None
            state = one.TransactionalState(session.transaction)
            assert session.do(Message1(state=state)) is None
            assert kept() == 0
            assert session.do(one.Discharge(session.transaction, fail)) is None
        assert kept() == 1
        return
    sent = _basic(pub, False) if way == "publish" else _transfer(version, pub, False)
    kinds = c if version == FINAL else m
    assert session.do(kinds.TxSelect(), sent) is None
    assert kept() == 0
    assert session.do(kinds.TxRollback(), sent) is None
    assert kept() == 0
    assert session.do(kinds.TxCommit()) is None
    assert kept() == 1
