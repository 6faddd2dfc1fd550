"""The event exchange: what happens in the broker is told on amq.rabbitmq.event."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.auth.permissions import everything
from harebell.model.settings.policy import Policy
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.conftest import Connect
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite

EVENTS = "amq.rabbitmq.event"
NOW_MS = 1_700_000_000_123


@pytest.fixture
def watcher(memory: MemorySite, connect_memory: Connect) -> Peer:
    """Somebody with a queue for events, which is not bound yet."""
    memory.broker.clock.ms = NOW_MS
    peer = connect_memory().open()
    peer.queue("heard")
    return peer


def _listen(watcher: Peer, *keys: str) -> None:
    for key in keys:
        watcher.ask(m.QueueBind("heard", EVENTS, key))


def _heard(watcher: Peer) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for _ in range(watcher.count("heard")):
        content = watcher.get("heard")
        assert content.method.exchange == EVENTS
        assert content.body == b""
        assert content.properties.delivery_mode == 2
        moment = content.properties.timestamp
        assert moment is not None
        headers = dict(content.properties.headers or {})
        milliseconds = headers.pop("timestamp_in_ms")
        assert NOW_MS <= milliseconds <= NOW_MS + 5_000
        assert int(moment.timestamp()) == milliseconds // 1000
        found.append((content.method.routing_key, headers))
    return found


def test_only_the_first_vhost_has_the_exchange(memory: MemorySite) -> None:
    assert EVENTS in memory.broker.vhosts["/"].exchanges
    assert EVENTS not in memory.broker.add_vhost("other").exchanges


def test_clients_may_not_publish_events(peer: Peer) -> None:
    peer.ask(m.ExchangeDeclare(EVENTS, "topic", durable=True, internal=True))
    peer.publish(EVENTS, "queue.created")
    peer.expect_channel_close(
        403,
        f"ACCESS_REFUSED - cannot publish to internal exchange '{EVENTS}' in vhost '/'",
        "basic.publish",
    )


def test_the_life_of_a_queue_is_told(watcher: Peer) -> None:
    _listen(watcher, "queue.*")
    watcher.queue("q", durable=True, arguments={"x-max-length": 5})
    watcher.ask(m.QueueDeclare("q", durable=True, arguments={"x-max-length": 5}))
    watcher.ask(m.QueueDelete("q"))
    assert _heard(watcher) == [
        (
            "queue.created",
            {
                "name": "q",
                "vhost": "/",
                "type": "classic",
                "durable": True,
                "auto_delete": False,
                "exclusive": False,
                "arguments": {"x-max-length": 5},
                "user_who_performed_action": "guest",
            },
        ),
        (
            "queue.deleted",
            {"name": "q", "vhost": "/", "user_who_performed_action": "guest"},
        ),
    ]


def test_the_life_of_an_exchange_and_its_bindings_is_told(watcher: Peer) -> None:
    _listen(watcher, "exchange.*")
    watcher.ask(m.ExchangeDeclare("x", "topic", auto_delete=True))
    watcher.ask(m.QueueBind("heard", EVENTS, "binding.*"))
    watcher.ask(m.QueueBind("heard", "x", "a.*", arguments={"b": 1}))
    watcher.ask(m.ExchangeBind("amq.fanout", "x", "c"))
    watcher.ask(m.ExchangeUnbind("amq.fanout", "x", "c"))
    watcher.ask(m.QueueUnbind("heard", "x", "a.*", arguments={"b": 1}))
    heard = _heard(watcher)
    assert [key for key, _ in heard] == [
        "exchange.created",
        "binding.created",  # of the queue to the event exchange itself
        "binding.created",
        "binding.created",
        "binding.deleted",
        "binding.deleted",
        "exchange.deleted",
    ]
    assert heard[0][1] == {
        "name": "x",
        "vhost": "/",
        "type": "topic",
        "durable": False,
        "auto_delete": True,
        "internal": False,
        "arguments": {},
        "user_who_performed_action": "guest",
    }
    assert heard[2][1] == {
        "source_name": "x",
        "source_kind": "exchange",
        "destination_name": "heard",
        "destination_kind": "queue",
        "routing_key": "a.*",
        "arguments": {"b": 1},
        "vhost": "/",
        "user_who_performed_action": "guest",
    }
    assert heard[3][1]["destination_kind"] == "exchange"


def test_objects_that_go_with_their_user_are_announced(
    watcher: Peer, connect_memory: Connect
) -> None:
    other = connect_memory().open()
    other.queue("its-own", exclusive=True)
    other.queue("unused", auto_delete=True)
    other.consume("unused")
    _listen(watcher, "queue.deleted", "consumer.deleted", "channel.closed", "connection.closed")
    other.close()
    heard = _heard(watcher)
    assert [key for key, _ in heard] == [
        "consumer.deleted",
        "queue.deleted",
        "channel.closed",
        "queue.deleted",
        "connection.closed",
    ]
    assert {headers["name"] for key, headers in heard if key == "queue.deleted"} == {
        "its-own",
        "unused",
    }


def test_a_connection_is_told_from_login_to_end(watcher: Peer, connect_memory: Connect) -> None:
    _listen(watcher, "user.authentication.*", "connection.*", "channel.*")
    connect_memory().open().close()
    heard = _heard(watcher)
    assert [key for key, _ in heard] == [
        "user.authentication.success",
        "connection.created",
        "channel.created",
        "channel.closed",
        "connection.closed",
    ]
    login, created, opened, closed, ended = (headers for _, headers in heard)
    assert (login["name"], login["auth_mechanism"], login["ssl"]) == ("guest", "PLAIN", False)
    assert (login["peer_host"], login["peer_port"]) == ("127.0.0.1", 50_000)
    assert "vhost" not in login
    assert (created["user"], created["vhost"], created["type"]) == ("guest", "/", "network")
    assert created["node"] == "harebell@localhost"
    assert created["client_properties"]["capabilities"]["basic.nack"] is True
    assert opened["connection"] == created["name"] == ended["name"]
    assert opened["number"] == 1
    assert opened["pid"] == closed["pid"]


def test_the_name_that_a_client_gives_itself_is_told_at_its_end_too(
    watcher: Peer, connect_memory: Connect
) -> None:
    _listen(watcher, "connection.*")
    named = connect_memory()
    named.greet()
    given = {"connection_name": "mine"}
    named.send(m.ConnectionStartOk(given, "PLAIN", b"\0guest\0guest", "en_US"))
    named.expect(m.ConnectionTune)
    named.send(m.ConnectionTuneOk(2047, 131_072, 0))
    named.ask(m.ConnectionOpen(virtual_host="/"))
    named.ask(m.ConnectionClose(200, "bye", 0, 0))
    assert [(key, headers["user_provided_name"]) for key, headers in _heard(watcher)] == [
        ("connection.created", "mine"),
        ("connection.closed", "mine"),
    ]


def test_a_login_that_fails_is_told_with_the_reason(watcher: Peer, connect_memory: Connect) -> None:
    _listen(watcher, "user.authentication.failure")
    stranger = connect_memory()
    stranger.greet()
    stranger.send(m.ConnectionStartOk({}, "PLAIN", b"\0guest\0wrong", "en_US"))
    ((key, headers),) = _heard(watcher)
    assert key == "user.authentication.failure"
    assert headers["name"] == "guest"
    assert headers["error"] == "PLAIN login refused: user 'guest' - invalid credentials"
    assert headers["user_who_performed_action"] == "rmq-internal"


def test_the_life_of_a_consumer_is_told(watcher: Peer) -> None:
    _listen(watcher, "consumer.*")
    watcher.queue("q")
    watcher.ask(m.BasicQos(0, 7))
    watcher.ask(m.BasicConsume("q", "tag", arguments={"x-priority": 3}))
    watcher.ask(m.BasicCancel("tag"))
    watcher.ask(m.BasicConsume("q", "other", no_ack=True))
    watcher.ask(m.QueueDelete("q"))
    heard = _heard(watcher)
    assert [(key, headers["consumer_tag"]) for key, headers in heard] == [
        ("consumer.created", "tag"),
        ("consumer.deleted", "tag"),
        ("consumer.created", "other"),
        ("consumer.deleted", "other"),
    ]
    assert heard[0][1] == {
        "consumer_tag": "tag",
        "channel": heard[1][1]["channel"],
        "queue": "q",
        "vhost": "/",
        "exclusive": False,
        "ack_required": True,
        "prefetch_count": 7,
        "arguments": {"x-priority": 3},
        "user_who_performed_action": "guest",
    }
    assert heard[2][1]["ack_required"] is False


def test_vhosts_and_policies_are_told(watcher: Peer, memory: MemorySite) -> None:
    _listen(watcher, "vhost.*", "policy.*")
    other = memory.broker.add_vhost("other")
    other.policies.put(Policy("p", "^q", "queues", 1, {"max-length": 3}))
    other.policies.delete("p")
    memory.broker.delete_vhost(other)
    memory.broker.events.publish()
    memory.turn()
    heard = _heard(watcher)
    assert [key for key, _ in heard] == [
        "vhost.created",
        "policy.set",
        "policy.cleared",
        "vhost.deleted",
    ]
    assert heard[1][1]["definition"] == {"max-length": 3}
    assert (heard[1][1]["pattern"], heard[1][1]["apply-to"]) == ("^q", "queues")


def test_events_of_another_vhost_are_published_in_the_first(
    watcher: Peer, memory: MemorySite, connect_memory: Connect
) -> None:
    memory.broker.add_vhost("other")
    guest = memory.users.get("guest")
    assert guest is not None
    guest.permissions["other"] = everything()
    _listen(watcher, "queue.*")
    connect_memory().open("other").queue("q")
    ((key, headers),) = _heard(watcher)
    assert (key, headers["vhost"]) == ("queue.created", "other")


def test_an_alarm_is_told_when_it_comes_and_when_it_goes(watcher: Peer, memory: MemorySite) -> None:
    _listen(watcher, "alarm.*")
    memory.registry.publishers.set_short("disk", True)
    memory.pass_time(1.0)
    memory.broker.events.publish()
    memory.registry.publishers.set_short("disk", False)
    memory.pass_time(1.0)
    memory.broker.events.publish()
    assert [(key, headers["source"]) for key, headers in _heard(watcher)] == [
        ("alarm.set", "disk"),
        ("alarm.cleared", "disk"),
    ]


def test_nothing_is_gathered_while_nobody_listens(watcher: Peer, memory: MemorySite) -> None:
    watcher.queue("q")
    memory.broker.events.note("queue.created", {"name": "q"})
    assert memory.broker.events.waiting == []
    _listen(watcher, "queue.#")
    assert _heard(watcher) == []


def test_an_event_whose_arguments_are_too_deep_is_told_without_them(watcher: Peer) -> None:
    _listen(watcher, "queue.*")
    deep: dict[str, Any] = {}
    for _ in range(30):
        deep = {"in": deep}
    watcher.queue("q", arguments={"x-other": deep})
    ((key, headers),) = _heard(watcher)
    assert (key, headers["name"]) == ("queue.created", "q")
    assert "arguments" not in headers


def test_a_consumer_of_events_hears_of_itself(watcher: Peer) -> None:
    _listen(watcher, "consumer.created")
    watcher.send(m.BasicConsume("heard", "me", no_ack=True))
    watcher.expect(m.BasicConsumeOk, consumer_tag="me")
    found = watcher.expect_delivery(b"", routing_key="consumer.created")
    assert isinstance(found.properties, BasicProperties)
    assert (found.properties.headers or {})["consumer_tag"] == "me"
