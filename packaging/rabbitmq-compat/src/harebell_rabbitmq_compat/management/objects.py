"""What rabbitmqadmin lists, declares and deletes, with the arguments and the path of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Listed(NamedTuple):
    """A list or a report of the HTTP API.

    Args:
        columns: the columns that are shown unless others are asked for; () for all.
        of_vhost: whether its path may name a vhost.
        as_json: columns whose objects are shown as JSON.
    """

    columns: tuple[str, ...] = ()
    of_vhost: bool = False
    as_json: tuple[str, ...] = ()


LISTS: dict[str, Listed] = {
    "connections": Listed(("name", "user", "channels")),
    "channels": Listed(("name", "user")),
    "consumers": Listed(of_vhost=True),
    "exchanges": Listed(("name", "type"), of_vhost=True),
    "queues": Listed(("name", "messages"), of_vhost=True),
    "bindings": Listed(("source", "destination", "routing_key"), of_vhost=True),
    "users": Listed(),
    "vhosts": Listed(("name", "messages")),
    "permissions": Listed(),
    "nodes": Listed(("name", "type", "mem_used")),
    "parameters": Listed(as_json=("value",)),
    "policies": Listed(as_json=("definition",)),
    "operator_policies": Listed(as_json=("definition",)),
    "vhost_limits": Listed(as_json=("value",)),
}
REPORTS: dict[str, Listed] = {
    "overview": Listed(
        ("rabbitmq_version", "cluster_name", "queue_totals.messages", "object_totals.queues")
    ),
}


class Thing(NamedTuple):
    """Something that is declared, deleted, closed, purged, published or got.

    Args:
        path: its path below `/api`, with the names of arguments in braces.
        needed: arguments that must be given; of a tuple one of its members.
        defaults: optional arguments with their values; None if there is none.
        as_json: arguments that are given as JSON.
    """

    path: str
    needed: tuple[str | tuple[str, ...], ...]
    defaults: Mapping[str, Any] = {}
    as_json: tuple[str, ...] = ()


_POLICY_DEFAULTS: dict[str, Any] = {"priority": 0, "apply-to": None}
DECLARED: dict[str, Thing] = {
    "exchange": Thing(
        "exchanges/{vhost}/{name}",
        ("name", "type"),
        {"auto_delete": "false", "durable": "true", "internal": "false", "arguments": {}},
        ("arguments",),
    ),
    "queue": Thing(
        "queues/{vhost}/{name}",
        ("name",),
        {
            "auto_delete": "false",
            "durable": "true",
            "arguments": {},
            "node": None,
            "queue_type": None,
        },
        ("arguments",),
    ),
    "binding": Thing(
        "bindings/{vhost}/e/{source}/{destination_char}/{destination}",
        ("source", "destination"),
        {"destination_type": "queue", "routing_key": "", "arguments": {}},
        ("arguments",),
    ),
    "vhost": Thing("vhosts/{name}", ("name",), {"tracing": None}),
    "user": Thing(
        "users/{name}",
        ("name", ("password", "password_hash"), "tags"),
        {"hashing_algorithm": None},
    ),
    "permission": Thing(
        "permissions/{vhost}/{user}", ("vhost", "user", "configure", "write", "read")
    ),
    "parameter": Thing(
        "parameters/{component}/{vhost}/{name}", ("component", "name", "value"), {}, ("value",)
    ),
    "policy": Thing(
        "policies/{vhost}/{name}",
        ("name", "pattern", "definition"),
        _POLICY_DEFAULTS,
        ("definition", "priority"),
    ),
    "operator_policy": Thing(
        "operator-policies/{vhost}/{name}",
        ("name", "pattern", "definition"),
        _POLICY_DEFAULTS,
        ("definition", "priority"),
    ),
    "vhost_limit": Thing("vhost-limits/{vhost}/{name}", ("vhost", "name", "value"), {}, ("value",)),
}
DELETED: dict[str, Thing] = {
    "exchange": Thing("exchanges/{vhost}/{name}", ("name",)),
    "queue": Thing("queues/{vhost}/{name}", ("name",)),
    "binding": Thing(
        "bindings/{vhost}/e/{source}/{destination_char}/{destination}/{properties_key}",
        ("source", "destination_type", "destination"),
        {"properties_key": "~"},
    ),
    "vhost": Thing("vhosts/{name}", ("name",)),
    "user": Thing("users/{name}", ("name",)),
    "permission": Thing("permissions/{vhost}/{user}", ("vhost", "user")),
    "parameter": Thing("parameters/{component}/{vhost}/{name}", ("component", "name")),
    "policy": Thing("policies/{vhost}/{name}", ("name",)),
    "operator_policy": Thing("operator-policies/{vhost}/{name}", ("name",)),
    "vhost_limit": Thing("vhost-limits/{vhost}/{name}", ("vhost", "name")),
}
CLOSED = {"connection": Thing("connections/{name}", ("name",))}
PURGED = {"queue": Thing("queues/{vhost}/{name}/contents", ("name",))}
PUBLISH = Thing(
    "exchanges/{vhost}/{exchange}/publish",
    ("routing_key",),
    {
        "payload": None,
        "properties": {},
        "exchange": "amq.default",
        "payload_encoding": "string",
    },
    ("properties",),
)
GET = Thing(
    "queues/{vhost}/{queue}/get",
    ("queue",),
    {"count": "1", "ackmode": "ack_requeue_true", "payload_file": None, "encoding": "auto"},
)
