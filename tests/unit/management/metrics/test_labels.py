"""The labels that the tables of metrics declare are those that the samples have."""

from __future__ import annotations

import re
from typing import Any

from harebell.admin.node import Certificate, Listening
from harebell.management.metrics import families
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import publish
from tests.unit.management.metrics.asking import Asked
from tests.unit.management.metrics.parsing import Parsed
from tests.unit.model.queue.logs import PreparedLog

_SUFFIX = re.compile(r"_(bucket|sum|count)$")


def busy() -> Asked:
    """A broker with a queue, a consumer, messages, dead letters at least once, and logins."""
    asked = Asked()
    listening = Listening("amqp/ssl", "0.0.0.0", 5671, ("server.pem",))
    asked.certificates.append((listening, Certificate("server.pem", 1_900_000_000)))
    peer = asked.world.peer()
    peer.ask(m.ConfirmSelect(nowait=False))
    peer.ask(m.QueueDeclare("late"))
    letters = {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "late",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    peer.ask(m.QueueDeclare("jobs", durable=True, arguments=letters))
    for _ in range(3):
        peer.give(publish(b"body", key="jobs"))
    peer.send(m.BasicGet("jobs"))
    peer.methods()
    peer.send(m.BasicReject(1, requeue=False))
    peer.send(m.BasicConsume("jobs", "tag"))
    peer.methods()
    peer.ask(m.QueueDeclare("dated"))
    queue: Any = asked.world.broker.vhosts["/"].queues["dated"]
    # The log of the store in memory keeps no times.
    queue.order.log = PreparedLog(asked.world.clock)
    for _ in range(2):
        peer.give(publish(b"body", key="dated"))
    peer.send(m.BasicGet("dated"))
    peer.methods()
    asked.source.login_attempts.count("http", "10.0.0.1", "ann", succeeded=True)
    return asked


def seen(found: Parsed, detailed: str = "") -> dict[str, set[tuple[str, ...]]]:
    """The names of the labels of every metric."""
    labels: dict[str, set[tuple[str, ...]]] = {}
    for sample, values, _ in found.samples:
        name = sample if sample in found.types else _SUFFIX.sub("", sample)
        names = tuple(each for each in values if each != "le")
        labels.setdefault(name.replace(detailed, "_", 1) if detailed else name, set()).add(names)
    return labels


def test_samples_have_the_labels_that_are_declared() -> None:
    asked = busy()
    found = seen(asked.metrics("/metrics/per-object"))
    declared = {
        f"{section.prefix}{metric.name}": {section.labels}
        for section in (
            *(families.IDENTITY + families.OF_THE_BROKER + families.OF_THE_NODE),
            *families.PER_OBJECT,
        )
        for metric in section.metrics
        if section not in (families.storage.storage, families.storage.standbys)
    }
    assert {name: found.get(name) for name in declared} == declared
    assert set(found) == set(declared)


def test_samples_of_a_family_have_the_labels_that_are_declared() -> None:
    asked = busy()
    for family, sections in families.FAMILIES.items():
        if family == "harebell_storage":  # which only a store in PostgreSQL has
            continue
        found = seen(asked.metrics("/metrics/detailed", f"family={family}"), "_detailed_")
        for section in sections:
            for metric in section.metrics:
                name = f"{section.prefix}{metric.name}"
                assert found.get(name) == {section.labels}, (family, name)
