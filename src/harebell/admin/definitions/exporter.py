"""Export the definitions of a broker as a document that RabbitMQ can import.

Exclusive queues are not exported, because they are deleted with their connections. Predeclared
exchanges are not exported either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harebell.admin.accounts import user_limits
from harebell.admin.definitions.entries import ImportTarget
from harebell.auth.users import User
from harebell.base.slices import Slices, at_once, gathered
from harebell.base.version import VERSION
from harebell.front.common.settings import COMPATIBLE_VERSION
from harebell.model.binding import Binding
from harebell.model.exchange import Exchange
from harebell.model.queue.arguments import queue_type
from harebell.model.queue.contract import Queue
from harebell.model.settings.metadata import Metadata
from harebell.model.settings.policy import Policy
from harebell.model.vhost import PREDECLARED, VHost
from harebell.wire.json_values import kept_table

_OWN_PREFIX = "amq.rabbitmq."
"""Prefix of exchanges that the broker declares itself."""


def document(target: ImportTarget, vhost: VHost | None = None) -> dict[str, Any]:
    """Export all definitions in one call; see `export_in_slices`."""
    return at_once(export_in_slices(target, vhost))


def export_in_slices(target: ImportTarget, vhost: VHost | None = None) -> Slices[dict[str, Any]]:
    """Export the definitions of the broker, or of one vhost.

    Args:
        target: the broker.
        vhost: export only this vhost; its name is left out of the entries, so that they can be
            imported into another vhost.
    """
    about = {
        "rabbit_version": COMPATIBLE_VERSION,
        "rabbitmq_version": COMPATIBLE_VERSION,
        "product_name": "Harebell",
        "product_version": VERSION,
    }
    broker = target.broker
    everywhere = [each for _, each in sorted(broker.vhosts.items())]
    vhosts = everywhere if vhost is None else [vhost]
    inside = {
        "parameters": _parameters,
        "policies": _policies,
        "queues": _queues,
        "exchanges": _exchanges,
        "bindings": _bindings,
    }
    sections: dict[str, Any] = {}
    for section, of in inside.items():
        sections[section] = yield from gathered(
            entry if vhost is not None else {**entry, "vhost": each.name}
            for each in vhosts
            for entry in of(each)
        )
    if vhost is not None:
        return {**about, **sections}
    users = target.users.by_name()
    return {
        **about,
        "users": (yield from gathered(_user(user) for user in users)),
        "vhosts": (yield from gathered(_vhost(each) for each in vhosts)),
        "permissions": (
            yield from gathered(entry for user in users for entry in _permissions(user))
        ),
        "topic_permissions": (
            yield from gathered(entry for user in users for entry in _topics(user))
        ),
        "global_parameters": [
            {"name": name, "value": value}
            for name, value in sorted(broker.global_parameters.values.items())
        ],
        **sections,
    }


def _user(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "password_hash": user.password_hash,
        "hashing_algorithm": user.algorithm,
        "tags": list(user.tags),
        "limits": user_limits(user),
    }


def _permissions(user: User) -> list[dict[str, Any]]:
    return [
        {
            "user": user.name,
            "vhost": vhost,
            "configure": held.configure,
            "write": held.write,
            "read": held.read,
        }
        for vhost, held in sorted(user.permissions.items())
    ]


def _topics(user: User) -> list[dict[str, Any]]:
    return [
        {
            "user": user.name,
            "vhost": vhost,
            "exchange": exchange,
            "write": topic.write,
            "read": topic.read,
        }
        for vhost, topics in sorted(user.topic_permissions.items())
        for exchange, topic in sorted(topics.items())
    ]


def _vhost(vhost: VHost) -> dict[str, Any]:
    metadata = vhost.metadata
    common: dict[str, Any] = {"description": metadata.description, "tags": list(metadata.tags)}
    if metadata.default_queue_type:
        common["default_queue_type"] = metadata.default_queue_type
    entry = {"name": vhost.name, **common, "metadata": common, "limits": dict(vhost.limits)}
    # Written only if not default: RabbitMQ has no `durability`, and sets tracing by a command.
    plain = Metadata()
    for name in ("tracing", "durability"):
        if getattr(metadata, name) != getattr(plain, name):
            entry[name] = getattr(metadata, name)
    return entry


def _policy(policy: Policy) -> dict[str, Any]:
    return {
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "priority": policy.priority,
        "definition": dict(policy.definition),
    }


def _parameters(vhost: VHost) -> list[dict[str, Any]]:
    held = sorted(vhost.parameters.values.items(), key=lambda item: item[0])
    parameters = [
        {"component": component, "name": name, "value": value} for (component, name), value in held
    ]
    operators = sorted(vhost.policies.operator_policies.items())
    return parameters + [
        {"component": "operator_policy", "name": name, "value": _policy(policy)}
        for name, policy in operators
    ]


def _policies(vhost: VHost) -> list[dict[str, Any]]:
    held = sorted(vhost.policies.policies.items())
    return [{"name": name, **_policy(policy)} for name, policy in held]


def _is_own(exchange: Exchange) -> bool:
    name = exchange.name
    return not name or name in PREDECLARED or name.startswith(_OWN_PREFIX)


def _queues(vhost: VHost) -> Iterator[dict[str, Any]]:
    for _, queue in sorted(vhost.queues.items()):
        if queue.owner is None:
            yield {
                "name": queue.name,
                "durable": queue.durable,
                "auto_delete": queue.auto_delete,
                "type": queue_type(queue.arguments),
                "arguments": kept_table(queue.arguments),
            }


def _exchanges(vhost: VHost) -> Iterator[dict[str, Any]]:
    for _, exchange in sorted(vhost.exchanges.items()):
        if not _is_own(exchange):
            yield {
                "name": exchange.name,
                "type": exchange.KIND,
                "durable": exchange.durable,
                "auto_delete": exchange.auto_delete,
                "internal": exchange.internal,
                "arguments": kept_table(exchange.arguments),
            }


def _bindings(vhost: VHost) -> Iterator[dict[str, Any]]:
    for binding in vhost.bindings():
        if not isinstance(binding.destination, Queue) or binding.destination.owner is None:
            yield {
                "source": binding.source.name,
                "destination": binding.destination.name,
                "destination_type": _end(binding),
                "routing_key": binding.routing_key,
                "arguments": kept_table(binding.arguments),
            }


def _end(binding: Binding) -> str:
    return "queue" if isinstance(binding.destination, Queue) else "exchange"
