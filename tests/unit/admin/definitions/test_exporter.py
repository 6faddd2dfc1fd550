"""Definitions that are written: what outlives the process, in RabbitMQ's words."""

from __future__ import annotations

import json

import msgspec
from msgspec.structs import replace

from harebell.admin.definitions.exporter import document
from harebell.admin.definitions.importer import import_definitions
from harebell.model.settings.metadata import Metadata
from tests.unit.admin.definitions.test_importer import RABBIT, target


def test_a_document_of_a_new_broker_has_its_user_and_its_vhost() -> None:
    found = document(target())
    assert [user["name"] for user in found["users"]] == ["guest"]
    assert [vhost["name"] for vhost in found["vhosts"]] == ["/"]
    assert found["exchanges"] == found["queues"] == found["bindings"] == []
    assert found["rabbit_version"] == found["rabbitmq_version"] == "3.13.7"


def test_transient_things_are_listed_and_exclusive_ones_left_out() -> None:
    there = target()
    vhost = there.broker.vhosts["/"]
    vhost.declare_exchange("durable", "fanout", durable=True)
    vhost.declare_exchange("transient", "fanout")
    vhost.declare_queue("durable", durable=True)
    vhost.declare_queue("transient")
    vhost.declare_queue("exclusive", durable=True, exclusive=True, owner=object())
    for name in ("durable", "transient", "exclusive"):
        owner = vhost.queues[name].owner
        vhost.bind("durable", vhost.queue(name, owner), name)
    found = document(there)
    for section in ("queues", "exchanges"):
        listed = [(each["name"], each["durable"]) for each in found[section]]
        assert listed == [("durable", True), ("transient", False)]
    assert [each["routing_key"] for each in found["bindings"]] == ["durable", "transient"]
    other = target()
    import_definitions(other, found)
    assert document(other) == found


def test_tracing_and_durability_are_written_where_they_say_something() -> None:
    there = target()
    assert "tracing" not in document(there)["vhosts"][0]
    there.broker.vhosts["/"].set_metadata(replace(Metadata(), durability="os"))
    found = document(there)
    assert found["vhosts"][0]["durability"] == "os"
    other = target()
    import_definitions(other, found)
    assert other.broker.vhosts["/"].metadata.durability == "os"


def test_a_document_survives_json_and_another_broker() -> None:
    there, other = target(), target()
    import_definitions(there, RABBIT)
    found = document(there)
    assert json.loads(msgspec.json.encode(found)) == found
    import_definitions(other, found)
    assert document(other) == found
