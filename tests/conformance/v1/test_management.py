"""The node `/management`: declare, bind, purge and delete over a pair of links, as RabbitMQ 4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harebell.auth.permissions import Permissions
from harebell.front.amqp_1_0.management import requests
from harebell.front.limits import MANAGEMENT_REQUEST_BYTES, MANAGEMENT_SHOWN_UNITS
from harebell.wire.v1 import composites as c
from harebell.wire.v1.encoding import encode
from harebell.wire.v1.sections import (
    Sections,
    body_sections,
    encode_message,
    split,
    value_section,
)
from harebell.wire.v1.values import Array, Symbol, Timestamp, ULong
from tests.conformance.arriving import unique
from tests.conformance.sites import MemorySite
from tests.conformance.v1.conftest import Connect1
from tests.conformance.v1.raw import Peer1
from tests.conformance.v1.test_links import receiver, sender

_ADDRESS = "/management"
_PAIRED = {Symbol("paired"): True}
_REQUESTS, _ANSWERS = 0, 1
_STREAM = {"x-queue-type": "stream"}
_STREAM_DEAD = {"arguments": {**_STREAM, "x-dead-letter-exchange": "x"}}
_STREAM_TEMPORARY = {"arguments": _STREAM, "auto_delete": True}


def _reserved(resource: str) -> str:
    return f"{resource} in vhost '/' starts with reserved prefix 'amq.'"


class Manager:
    """A pair of links to the node."""

    def __init__(self, peer: Peer1, credit: int = 100) -> None:
        self.peer = peer
        name = unique("pair")
        fields: dict[str, Any] = {"name": name, "snd_settle_mode": 1, "properties": _PAIRED}
        peer.attach_receiver(_ADDRESS, _ANSWERS, credit=credit, target=c.Target(_ADDRESS), **fields)
        peer.attach_sender(_ADDRESS, _REQUESTS, source=c.Source(_ADDRESS), **fields)

    def send(self, method: str, path: str, body: Any = None, number: Any = "1") -> None:
        """A request."""
        properties = c.Properties(number, to=path, subject=method, reply_to="$me")
        message = encode_message(value_section(body), None, None, properties)
        self.peer.transfer_payload(_REQUESTS, message, settled=True, delivery_tag=b"")

    def answer(self) -> tuple[int, Any]:
        """The status and the body of the next answer."""
        while True:
            arrived = self.peer.next("an answer")
            # Credit for more requests may come between the answers.
            if not isinstance(arrived.value, c.Flow):
                break
        assert isinstance(arrived.value, c.Transfer), arrived
        assert arrived.value.settled
        raw, body, family = split(arrived.payload)
        sections = Sections(raw)
        assert sections.application_properties() == {"http:response": "1.1"}
        self.correlation = sections.properties().correlation_id
        (section,) = body_sections(body, family)
        return int(sections.properties().subject or ""), section.value

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request and wait for the answer."""
        self.send(method, path, body)
        return self.answer()


@pytest.fixture
def manager(peer1: Peer1) -> Iterator[Manager]:
    yield Manager(peer1)
    # Credit for more requests may still be under way.
    peer1.send(c.Flow(None, 2048, 0, 2048, echo=True))
    while peer1.expect(c.Flow).handle is not None:
        pass


@pytest.mark.rule("1.0#186")
def test_a_queue_is_declared_looked_at_and_deleted(manager: Manager) -> None:
    name = unique("managed")
    path = f"/queues/{name}"
    arguments = {"x-max-length": ULong(10), "x-queue-type": "quorum"}
    status, queue = manager.ask("PUT", path, {"durable": True, "arguments": arguments})
    assert status == 201
    assert (queue["name"], queue["vhost"], queue["type"]) == (name, "/", "quorum")
    assert (queue["durable"], queue["auto_delete"], queue["exclusive"]) == (True, False, False)
    assert (queue["message_count"], queue["consumer_count"]) == (0, 0)
    assert queue["arguments"] == {"x-max-length": 10, "x-queue-type": "quorum"}
    assert list(queue["replicas"]) == [queue["leader"]]
    assert isinstance(queue["replicas"], Array)
    assert manager.ask("PUT", path, {"durable": True, "arguments": arguments})[0] == 200
    assert manager.ask("GET", path) == (200, queue)
    assert manager.ask("DELETE", path) == (200, {"message_count": 0})
    assert manager.ask("DELETE", path) == (200, {"message_count": 0})
    assert manager.ask("GET", path) == (404, f"queue '{name}' in vhost '/' not found")


def test_a_queue_that_is_different_is_a_conflict(manager: Manager) -> None:
    path = f"/queues/{unique('managed')}"
    assert manager.ask("PUT", path, {"arguments": {"x-max-length": 10}})[0] == 201
    status, text = manager.ask("PUT", path, {"arguments": {"x-max-length": 11}})
    assert status == 409
    assert "inequivalent arg 'x-max-length'" in text
    manager.ask("DELETE", path)


def test_the_default_of_an_absent_body_is_a_durable_queue(manager: Manager) -> None:
    path = f"/queues/{unique('managed')}"
    status, queue = manager.ask("PUT", path, None)
    assert (status, queue["durable"]) == (201, True)
    manager.ask("DELETE", path)


def test_sections_may_come_in_any_order_and_without_a_body(manager: Manager) -> None:
    path = f"/queues/{unique('managed')}"
    properties = c.Properties("x", to=path, subject="PUT").encoded()
    for message in (properties, value_section(None) + properties):
        manager.peer.transfer_payload(_REQUESTS, message, settled=True, delivery_tag=b"")
        assert manager.answer()[0] in (200, 201)
    manager.ask("DELETE", path)


@pytest.mark.parametrize("number", ["text", ULong(7), b"octets"])
def test_the_answer_has_the_message_id_in_its_own_type(manager: Manager, number: Any) -> None:
    manager.send("GET", "/queues/none", number=number)
    assert manager.answer()[0] == 404
    assert manager.correlation == number
    assert type(manager.correlation) is type(number)


def test_an_exchange_is_declared_bound_and_deleted(manager: Manager) -> None:
    exchange, queue = unique("x/ä"), unique("managed")
    path = "/exchanges/" + exchange.replace("/", "%2F").replace("ä", "%C3%A4")
    assert manager.ask("PUT", path, {"type": "topic", "durable": True}) == (204, None)
    assert manager.ask("PUT", path, {"type": "topic", "durable": True}) == (204, None)
    status, text = manager.ask("PUT", path, {"type": "fanout", "durable": True})
    assert (status, "inequivalent arg 'type'" in text) == (409, True)
    manager.ask("PUT", f"/queues/{queue}")
    binding = {"source": exchange, "destination_queue": queue, "binding_key": "a;b&c=*"}
    plain = {**binding, "arguments": {}}
    other = {**binding, "arguments": {"at": Timestamp(1_000), "n": 1}}
    assert manager.ask("POST", "/bindings", plain) == (204, None)
    assert manager.ask("POST", "/bindings", other) == (204, None)
    source = path.removeprefix("/exchanges/")
    status, found = manager.ask("GET", f"/bindings?src={source}&dstq={queue}")
    assert status == 200
    assert [{key: row[key] for key in plain} for row in found] == [plain, other]
    assert manager.ask("GET", f"/bindings?src={source}&dstq={queue}&key=none") == (200, [])
    assert manager.ask("DELETE", found[1]["location"]) == (204, None)
    assert manager.ask("GET", f"/bindings?src={source}&dstq={queue}") == (200, found[:1])
    assert manager.ask("DELETE", found[0]["location"]) == (204, None)
    # What is not there is deleted already.
    assert manager.ask("DELETE", found[0]["location"]) == (204, None)
    assert manager.ask("GET", f"/bindings?src={source}&dstq={queue}") == (200, [])
    assert manager.ask("DELETE", path) == (204, None)
    assert manager.ask("DELETE", path) == (204, None)
    manager.ask("DELETE", f"/queues/{queue}")


def test_many_bindings_are_listed_and_removed_in_slices(
    memory: MemorySite, memory1: Connect1, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = Manager(memory1().open(max_frame_size=131_072).begin())
    vhost, turns, work = memory.broker.vhosts["/"], memory.registry.turns, memory.registry.work
    queue = vhost.declare_queue("many")
    for number in range(300):
        vhost.bind("amq.headers", queue, "", {"n": number})
    encoded: list[Any] = []
    monkeypatch.setattr(requests, "encode", lambda row: encoded.append(row) or encode(row))
    budget = 20 * MANAGEMENT_SHOWN_UNITS
    turns.limit(budget, bool)

    def asked(method: str, path: str) -> tuple[int, int]:
        """The turns that a request takes, and the most units in one."""
        taken, most = 0, 0
        manager.send(method, path)
        while turns.busy:
            before = work.spent
            turns.next_turn()
            memory.turn()
            taken, most = taken + 1, max(most, work.spent - before)
        return taken, most

    slices, most = asked("GET", "/bindings?src=amq.headers&dstq=many")
    status, rows = manager.answer()
    assert (status, len(rows), len(encoded)) == (200, 300, 300)
    assert slices >= 300 // 20
    assert most <= budget + 2 * MANAGEMENT_SHOWN_UNITS
    # The last one: the others are looked at before it.
    slices, most = asked("DELETE", rows[-1]["location"])
    assert manager.answer() == (204, None)
    assert slices >= 300 // 20
    assert most <= budget + 2 * MANAGEMENT_SHOWN_UNITS
    assert len(queue.bound) == 299


def test_a_binding_with_a_wrong_selector_is_refused(manager: Manager) -> None:
    queue = unique("managed")
    manager.ask("PUT", f"/queues/{queue}")
    arguments = {"x-filter-jms-selector": "color ="}
    binding = {"source": "amq.topic", "destination_queue": queue, "binding_key": "k"}
    status, text = manager.ask("POST", "/bindings", {**binding, "arguments": arguments})
    assert (status, "the selector is wrong at character 8" in text) == (400, True)
    manager.ask("DELETE", f"/queues/{queue}")


def test_exchanges_are_bound_to_exchanges(manager: Manager) -> None:
    ends = [unique("x"), unique("x")]
    for name in ends:
        manager.ask("PUT", f"/exchanges/{name}", {"type": "fanout"})
    binding = {"source": ends[0], "destination_exchange": ends[1]}
    assert manager.ask("POST", "/bindings", binding)[0] == 204
    status, (row,) = manager.ask("GET", f"/bindings?src={ends[0]}&dste={ends[1]}&key=")
    assert (status, row["destination_exchange"]) == (200, ends[1])
    for name in ends:
        manager.ask("DELETE", f"/exchanges/{name}")


def test_a_queue_is_purged(manager: Manager) -> None:
    name = unique("managed")
    manager.ask("PUT", f"/queues/{name}")
    manager.peer.attach_sender(f"/queues/{name}", 5)
    for _ in range(3):
        manager.peer.transfer(5, b"x", settled=True)
    assert manager.ask("DELETE", f"/queues/{name}/messages") == (200, {"message_count": 3})
    assert manager.ask("GET", f"/queues/{name}")[1]["message_count"] == 0
    manager.ask("DELETE", f"/queues/{name}")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("PUT", "/queues/amq.mine", {}, 403, _reserved("queue 'amq.mine'")),
        ("PUT", "/exchanges/amq.mine", {}, 403, _reserved("exchange 'amq.mine'")),
        ("PUT", "/exchanges/", {}, 403, "operation not permitted on the default exchange"),
        ("DELETE", "/exchanges/", None, 403, "operation not permitted on the default exchange"),
        ("DELETE", "/exchanges/amq.direct", None, 403, _reserved("exchange 'amq.direct'")),
        ("PUT", "/queues/", {}, 400, "declare queue with empty name not allowed"),
        ("PUT", "/queues/q", "text", 400, "the body must be map, not str"),
        ("PUT", "/queues/q", {"durable": "yes"}, 400, "durable must be boolean"),
        ("PUT", "/queues/q", {"durabel": True}, 400, "bad queue property 'durabel'"),
        ("PUT", "/queues/q", {"arguments": [1]}, 400, "arguments must be map, not list"),
        ("PUT", "/queues/q", {"arguments": {1: 2}}, 400, "a key of arguments must be string"),
        ("PUT", "/exchanges/x", {"durabel": True}, 400, "bad exchange property 'durabel'"),
        ("PUT", "/queues/q", {"arguments": {"x-max-length": "a"}}, 409, "x-max-length"),
        ("PUT", "/queues/q", _STREAM_DEAD, 409, "invalid arg 'x-dead-letter-exchange' for queue"),
        ("PUT", "/queues/q", _STREAM_TEMPORARY, 400, "invalid property 'auto-delete' for queue"),
        ("GET", "queues", None, 400, "failed to normalize URI 'queues'"),
        ("PUT", "/queues/%zz", {}, 400, "not percent-encoded correctly"),
        ("PUT", "/exchanges/x", {"type": "none"}, 400, "unknown exchange type 'none'"),
        ("PUT", "/exchanges/x", {"type": 5}, 400, "type must be string"),
        ("GET", "/queues/none", None, 404, "queue 'none' in vhost '/' not found"),
        ("DELETE", "/queues/none/messages", None, 404, "no queue 'none' in vhost '/'"),
        ("POST", "/bindings", {"source": "amq.topic"}, 400, "a binding has one of"),
        (
            *("POST", "/bindings", {"source": "none", "destination_queue": "none"}),
            *(400, "no exchange 'none' in vhost '/'"),
        ),
        (
            *("POST", "/bindings", {"source": "amq.topic", "destination_queue": "none"}),
            *(400, "no queue 'none' in vhost '/'"),
        ),
        (
            *("POST", "/bindings", {"source": "", "destination_queue": "none"}),
            *(403, "operation not permitted on the default exchange"),
        ),
        (
            *("POST", "/bindings", {"source": "amq.topic", "destination_exchange": ""}),
            *(403, "operation not permitted on the default exchange"),
        ),
        (
            *("DELETE", "/bindings/src=x;dstq=q;other=k;args=", None, 400),
            "bad binding path segment 'src=x;dstq=q;other=k;args='",
        ),
        ("GET", "/bindings", None, 400, "a binding has one of"),
        ("GET", "/bindings?src=none&dstq=none", None, 404, "no exchange 'none'"),
        ("PUT", "/auth/tokens", "text", 400, "the body must be binary"),
        ("GET", "/exchanges/x", None, 400, "GET /exchanges/x is no request of this node"),
        ("PATCH", "/", None, 400, "PATCH / is no request of this node"),
    ],
)
def test_what_is_wrong_with_a_request_is_said(
    manager: Manager, method: str, path: str, body: Any, status: int, words: str
) -> None:
    found, text = manager.ask(method, path, body)
    assert (found, words in text) == (status, True), text
    # The links go on.
    assert manager.ask("GET", "/queues/none")[0] == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/queues/a%0Ab", {}),
        ("DELETE", "/queues/a%0Ab", None),
        ("PUT", "/exchanges/a%0Ab", {}),
        ("DELETE", "/exchanges/a%0Ab", None),
        ("POST", "/bindings", {"source": "a\nb", "destination_queue": "q"}),
        ("POST", "/bindings", {"source": "amq.topic", "destination_queue": "a\nb"}),
    ],
)
def test_names_have_no_line_ends(manager: Manager, method: str, path: str, body: Any) -> None:
    text = "Bad name 'a\nb': line feed and carriage return characters not allowed"
    assert manager.ask(method, path, body) == (400, text)


def test_an_exclusive_queue_is_not_declared_otherwise(manager: Manager) -> None:
    name = unique("managed")
    assert manager.ask("PUT", f"/queues/{name}", {"exclusive": True})[0] == 201
    status, text = manager.ask("PUT", f"/queues/{name}", {"exclusive": False})
    assert status == 400
    assert f"cannot obtain exclusive access to locked queue '{name}' in vhost '/'" in text
    manager.ask("DELETE", f"/queues/{name}")


def test_no_more_queues_than_the_vhost_may_have_are_declared(
    memory: MemorySite, memory1: Connect1
) -> None:
    memory.broker.add_vhost("few").parameters.put("vhost-limits", "limits", {"max-queues": 0})
    memory.users.add("few", "few", vhosts=("few",))
    peer = memory1().open("few", user="few", password="few").begin()
    text = "cannot declare queue 'q': queue limit in vhost 'few' (0) is reached"
    assert Manager(peer).ask("PUT", "/queues/q") == (403, text)
    peer.expect_refused(
        c.Attach("s", 5, False, target=c.Target("/queue/q")), "amqp:resource-limit-exceeded", text
    )


def test_a_stream_is_not_purged(manager: Manager) -> None:
    name = unique("managed")
    path = f"/queues/{name}"
    manager.ask("PUT", path, {"arguments": {"x-queue-type": "stream"}})
    text = f"purge not supported by queue '{name}' in vhost '/'"
    assert manager.ask("DELETE", f"{path}/messages") == (400, text)
    manager.ask("DELETE", path)


def test_a_token_is_accepted_from_a_user_with_a_password(manager: Manager) -> None:
    assert manager.ask("PUT", "/auth/tokens", b"token") == (204, None)


# --- the pair -----------------------------------------------------------------------------------


def test_links_that_are_no_pair_are_refused(peer1: Peer1) -> None:
    text = "Link property 'paired' is not set to boolean value 'true'"
    for properties in (None, {Symbol("paired"): 1}):
        for make in (sender, receiver):
            asked = make(_ADDRESS, properties=properties)
            peer1.expect_refused(asked, "amqp:invalid-field", text)
    asked = sender(_ADDRESS, properties=_PAIRED)
    peer1.expect_refused(asked, "amqp:invalid-field", "address of the source must be /management")


def test_a_request_without_a_link_for_its_answer_is_refused(peer1: Peer1) -> None:
    peer1.attach_sender(_ADDRESS, 0, source=c.Source(_ADDRESS), properties=_PAIRED)
    properties = c.Properties("x", to="/queues/q", subject="GET").encoded()
    peer1.transfer_payload(0, properties, settled=True, delivery_tag=b"")
    peer1.expect_error(c.Detach, "amqp:precondition-failed", "attach it first")
    peer1.send(c.Detach(0, True))


def test_requests_wait_until_their_answers_can_leave(peer1: Peer1) -> None:
    manager = Manager(peer1, credit=0)
    assert peer1.credit.link_credit == 8
    for number in range(8):
        manager.send("GET", "/queues/none", number=str(number))
    # No answer without credit, and no credit for more requests.
    peer1.quiet()
    peer1.give(_ANSWERS, 8)
    for number in range(8):
        assert manager.answer()[0] == 404
        assert manager.correlation == str(number)
    peer1.expect(c.Flow, handle=_REQUESTS, link_credit=8)


def test_a_drain_of_the_answers_is_answered(peer1: Peer1) -> None:
    Manager(peer1, credit=0)
    peer1.give(_ANSWERS, 5, drain=True)
    peer1.expect(c.Flow, handle=_ANSWERS, link_credit=0, delivery_count=5, drain=True)


def test_an_unsettled_request_is_accepted(peer1: Peer1) -> None:
    name = unique("pair")
    peer1.attach_receiver(
        _ADDRESS, 1, credit=10, name=name, target=c.Target(_ADDRESS), properties=_PAIRED
    )
    source = c.Source(_ADDRESS)
    peer1.attach_sender(_ADDRESS, 0, name=name, source=source, properties=_PAIRED)
    properties = c.Properties("x", to="/queues/none", subject="GET").encoded()
    number = peer1.transfer_payload(0, properties)
    peer1.expect_transfer(handle=1)
    peer1.expect(c.Disposition, first=number, settled=True, state=c.Accepted())


def test_a_long_answer_comes_in_several_transfers(connect1: Connect1) -> None:
    peer = connect1().open(max_frame_size=512).begin()
    manager = Manager(peer)
    arguments = {"x-own": "v" * 2_000}
    name = unique("managed")
    manager.send("PUT", f"/queues/{name}", {"arguments": arguments})
    payload = b""
    while True:
        arrived = peer.next("transfer")
        if isinstance(arrived.value, c.Flow):
            continue
        assert isinstance(arrived.value, c.Transfer)
        payload += arrived.payload
        if not arrived.value.more:
            break
    assert max(peer.sizes) <= 512
    _, body, family = split(payload)
    (section,) = body_sections(body, family)
    assert section.value["arguments"] == arguments
    manager.ask("DELETE", f"/queues/{name}")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/queues/q", None),
        ("GET", "/queues/q", None),
        ("DELETE", "/queues/q", None),
        ("DELETE", "/queues/q/messages", None),
        ("PUT", "/exchanges/x", None),
        ("DELETE", "/exchanges/x", None),
        ("POST", "/bindings", {"source": "amq.topic", "destination_queue": "q"}),
        ("GET", "/bindings?src=amq.topic&dstq=q", None),
        ("DELETE", "/bindings/src=amq.topic;dstq=q;key=;args=", None),
    ],
)
def test_a_missing_permission_ends_the_session(
    memory: MemorySite, memory1: Connect1, method: str, path: str, body: Any
) -> None:
    memory.users.add("nobody", "nobody", vhosts=("/",))
    user = memory.users.get("nobody")
    assert user is not None
    user.permissions["/"] = Permissions("", "", "")
    manager = Manager(memory1().open(user="nobody", password="nobody").begin())
    manager.send(method, path, body)
    manager.peer.expect_error(c.End, "amqp:unauthorized-access", "refused for user 'nobody'")
    manager.peer.send(c.End())


def test_a_request_is_as_long_as_a_declaration_may_be_and_no_longer(peer1: Peer1) -> None:
    Manager(peer1)
    peer1.send(c.Detach(_REQUESTS, True))
    peer1.expect(c.Detach)
    fields = {"source": c.Source(_ADDRESS), "snd_settle_mode": 1, "properties": _PAIRED}
    answer = peer1.attach_sender(_ADDRESS, _REQUESTS, **fields)
    assert answer.max_message_size == MANAGEMENT_REQUEST_BYTES
    properties = c.Properties("1", to="/queues/q", subject="PUT", reply_to="$me")
    body = value_section({"arguments": {"x-own": "v" * MANAGEMENT_REQUEST_BYTES}})
    message = encode_message(body, None, None, properties)
    half = len(message) // 2
    peer1.transfer_payload(_REQUESTS, message[:half], settled=True, more=True)
    peer1.transfer_payload(_REQUESTS, message[half:], settled=True)
    words = f"maximum message size ({MANAGEMENT_REQUEST_BYTES} bytes)"
    peer1.expect_error(c.Detach, "amqp:link:message-size-exceeded", words)
    peer1.send(c.Detach(_REQUESTS, True))


def test_a_client_that_takes_no_answers_is_not_served_for_ever(connect1: Connect1) -> None:
    # It gives credit for answers, and no window for them.
    peer = connect1().open().begin(window=0)
    manager = Manager(peer, credit=0)
    peer.send(c.Flow(None, 0, 0, 2_048, _ANSWERS, 0, 1_000))
    arguments = {f"x-own-{number}": "v" * 55_000 for number in range(2)}
    path = f"/queues/{unique('managed')}"
    for _ in range(12):
        manager.send("PUT", path, {"arguments": arguments})
    while True:
        arrived = peer.next("the end of the session")
        if isinstance(arrived.value, c.End):
            break
        assert isinstance(arrived.value, c.Flow)
    assert arrived.value.error.condition == "amqp:resource-limit-exceeded"
    peer.send(c.End())
    other = Manager(peer.begin())
    assert other.ask("DELETE", path)[0] == 200
