"""Health checks: ok where the broker is well, and what they say where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.admin.catalog import HEALTH
from harebell.admin.context import CheckFailed, CommandRefused
from harebell.admin.node import Certificate, Listening
from harebell.base.errors import Refusal
from harebell.front.common.blocked_publishers import Alarm
from harebell.front.convert import composed
from harebell.wire.v09 import methods as m
from tests.unit.admin.commands.site import AMQP, Site

OK = {"status": "ok"}
SINGLE = {"status": "ok", "reason": "single node cluster"}
WELL: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "alarms": ({}, OK),
    "in-effect": ({}, []),
    "findings": ({}, []),
    "local-alarms": ({}, OK),
    "certificate-expiration": ({"within": 1, "unit": "months"}, OK),
    "port-listener": ({"port": 5672}, {"status": "ok", "port": 5672}),
    "protocol-listener": ({"protocols": "amqp091"}, {"status": "ok", "protocol": "amqp"}),
    "virtual-hosts": ({}, OK),
    "node-is-mirror-sync-critical": ({}, SINGLE),
    "node-is-quorum-critical": ({}, SINGLE),
    "metadata-store": ({}, OK),
    "quorum-queues-without-elected-leaders": ({"vhost": "/", "pattern": ".*"}, OK),
    "is-in-service": ({}, OK),
    "below-node-connection-limit": ({}, {"status": "ok", "connections": 0, "limit": 900}),
    "ready-to-serve-clients": ({}, OK),
    "reached-target-cluster-size": (
        {},
        {"status": "ok", "cluster_size": 1, "target_cluster_size_hint": 1},
    ),
    "node": ({"name": "harebell@localhost"}, OK),
    "aliveness-test": ({"vhost": "/"}, OK),
}


@pytest.mark.parametrize("verb", WELL)
def test_a_healthy_broker_passes(verb: str) -> None:
    fields, expected = WELL[verb]
    assert Site().run(f"health.{verb}", **fields) == expected


def test_every_check_is_tested() -> None:
    assert set(WELL) == set(HEALTH.commands)


def _failure(site: Site, verb: str, **fields: Any) -> dict[str, Any]:
    with pytest.raises(CheckFailed) as caught:
        site.run(f"health.{verb}", **fields)
    return caught.value.answer


def test_short_resources_are_listed_with_their_beginning_and_limit() -> None:
    site = Site()
    site.world.registry.publishers.alarms["file handles"] = Alarm(
        1_700_000_000_000, "raise the limit"
    )
    assert site.run("health.in-effect") == [
        {
            "node": "harebell@localhost",
            "resource": "file_descriptor_limit",
            "since": 1_700_000_000_000,
            "reason": "raise the limit",
        }
    ]


def test_a_short_resource_is_an_alarm() -> None:
    site = Site()
    site.world.registry.publishers.set_short("disk", True)
    expected = {
        "status": "failed",
        "reason": "There are alarms in effect in the cluster",
        "alarms": [{"node": "harebell@localhost", "resource": "disk"}],
    }
    assert _failure(site, "alarms") == expected
    answer = _failure(site, "local-alarms")
    assert answer["reason"] == "There are alarms in effect on the node"
    node = site.run("health.node")
    assert node == {"status": "failed", "reason": "resource alarm(s) in effect: disk"}
    site.world.registry.publishers.set_short("disk", False)
    assert site.run("health.alarms") == OK


def test_a_port_without_a_listener_fails_and_names_the_others() -> None:
    assert _failure(Site(), "port-listener", port=5671) == {
        "status": "failed",
        "reason": "No active listener",
        "missing": 5671,
        "ports": [5672, 15672],
    }


@pytest.mark.parametrize("port", [0, 65_536, -1])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(CommandRefused, match="is no port"):
        Site().run("health.port-listener", port=port)


def test_one_protocol_of_several_is_enough() -> None:
    site = Site()
    answer = site.run("health.protocol-listener", protocols="amqps,http")
    assert answer == {"status": "ok", "protocol": "http"}
    assert _failure(site, "protocol-listener", protocols="mqtt") == {
        "status": "failed",
        "reason": "No active listener",
        "missing": "mqtt",
        "protocols": ["amqp", "http"],
    }


def test_a_certificate_that_expires_in_time_fails() -> None:
    site = Site()
    now = site.world.clock.ms // 1000
    tls = Listening("amqp/ssl", "127.0.0.1", 5671, ("/etc/cert.pem",))
    certificate = Certificate("/etc/cert.pem", now + 10 * 86_400)
    site.change(listeners=(AMQP, tls), certificates=(certificate,))
    assert site.run("health.certificate-expiration", within=1, unit="weeks") == OK
    answer = _failure(site, "certificate-expiration", within=2, unit="weeks")
    (expired,) = answer["expired"]
    assert (expired["port"], expired["certfile"]) == (5671, "/etc/cert.pem")
    assert expired["certfile_expires_on"] == ["2023-11-24 22:13:20"]


@pytest.mark.parametrize(
    ("within", "unit", "text"),
    [
        (1, "hours", "Time unit not recognised: hours"),
        (-1, "days", "Invalid expiration period"),
        (10**12, "years", "Invalid expiration period"),
    ],
)
def test_a_wrong_period_is_refused(within: int, unit: str, text: str) -> None:
    with pytest.raises(CommandRefused, match=text):
        Site().run("health.certificate-expiration", within=within, unit=unit)


def test_a_node_with_its_connections_used_up_does_not_serve_clients() -> None:
    site = Site()
    site.change(sockets_total=1)
    site.world.peer()
    answer = _failure(site, "below-node-connection-limit")
    assert (answer["connections"], answer["limit"]) == (1, 1)
    assert _failure(site, "ready-to-serve-clients")["status"] == "failed"


def test_a_node_without_a_listener_for_clients_is_not_in_service() -> None:
    site = Site()
    site.change(listeners=(Listening("http", "127.0.0.1", 15672),))
    assert _failure(site, "is-in-service")["status"] == "failed"
    assert _failure(site, "ready-to-serve-clients")["status"] == "failed"


def test_another_node_is_not_checked() -> None:
    with pytest.raises(CommandRefused, match="no node 'rabbit@elsewhere'"):
        Site().run("health.node", name="rabbit@elsewhere")


def test_the_aliveness_test_leaves_its_queue_empty_and_messages_of_others_alone() -> None:
    site = Site()
    for _ in range(3):
        assert site.run("health.aliveness-test", vhost="/") == OK
    queue = site.world.broker.vhosts["/"].queues["aliveness-test"]
    assert (queue.ready_count(), queue.unacked, queue.durable) == (0, 0, False)


def test_the_aliveness_test_fails_where_a_queue_takes_no_messages() -> None:
    site = Site()
    peer = site.world.peer()
    full = {"x-max-length": 0, "x-overflow": "reject-publish"}
    peer.ask(m.QueueDeclare("aliveness-test", arguments=full))
    assert "takes no messages" in _failure(site, "aliveness-test", vhost="/")["reason"]


def test_the_aliveness_test_takes_no_message_of_an_exclusive_queue() -> None:
    site = Site()
    peer = site.world.peer()
    peer.ask(m.QueueDeclare("aliveness-test", exclusive=True))
    queue = site.world.broker.vhosts["/"].queues["aliveness-test"]
    queue.publish(composed("", "aliveness-test", b"mine", {}))
    with pytest.raises(Refusal, match="cannot obtain exclusive access to locked queue"):
        site.run("health.aliveness-test", vhost="/")
    assert [message.body for message, _, _ in [queue.get()]] == [b"mine"]


def test_the_aliveness_test_of_an_unknown_vhost_is_refused() -> None:
    with pytest.raises(CommandRefused, match="no vhost 'none'"):
        Site().run("health.aliveness-test", vhost="none")
