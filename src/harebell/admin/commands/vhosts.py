"""Commands for vhosts: `harebell vhosts`."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from harebell.admin.context import AdminContext, Command, Fields, Refused, checked_name
from harebell.base.limits import VHOST_NAME_BYTES
from harebell.model.broker import DEFAULT_VHOST
from harebell.model.metadata import Metadata
from harebell.model.vhost import VHost


class Named(Fields):
    """The vhost it is about."""

    name: str


class Described(Named, kw_only=True):
    """A vhost and its metadata; what is None stays as it is."""

    description: str | None = None
    tags: list[str] | None = None
    default_queue_type: str | None = None
    durability: str | None = None
    tracing: bool | None = None


def _shown(vhost: VHost) -> dict[str, Any]:
    metadata = vhost.metadata
    return {
        "name": vhost.name,
        "description": metadata.description,
        "tags": list(metadata.tags),
        "default_queue_type": metadata.default_queue_type,
        "durability": metadata.durability,
        "tracing": metadata.tracing,
        "queues": len(vhost.queues),
        "exchanges": len(vhost.exchanges),
        "messages": sum(
            queue.ready_count() + queue.unacked + queue.leased for queue in vhost.queues.values()
        ),
    }


def list_vhosts(context: AdminContext, _: Fields) -> list[dict[str, Any]]:
    """All vhosts by name, and how much is in them."""
    return [_shown(vhost) for _, vhost in sorted(context.broker.vhosts.items())]


def _changed(asked: Described, known: Metadata) -> Metadata:
    """Metadata with what is asked for in the place of what was there."""
    news = {
        field.name: getattr(asked, field.name)
        for field in fields(Metadata)
        if getattr(asked, field.name) is not None
    }
    if "tags" in news:
        news["tags"] = tuple(dict.fromkeys(news["tags"]))
    return replace(known, **news)


def add_vhost(context: AdminContext, asked: Described) -> dict[str, Any]:
    """A new vhost, which nobody may open yet."""
    name = checked_name(asked.name, "vhost", VHOST_NAME_BYTES)
    if name in context.broker.vhosts:
        raise Refused(f"there is a vhost '{name}' already: choose another name")
    vhost = context.broker.add_vhost(name, _changed(asked, Metadata()))
    context.log("info", f"vhost '{name}' was added")
    return _shown(vhost)


def set_vhost(context: AdminContext, asked: Described) -> dict[str, Any]:
    """Other metadata for a vhost, at once."""
    vhost = context.vhost(asked.name)
    vhost.set_metadata(_changed(asked, vhost.metadata))
    context.log("info", f"the metadata of vhost '{vhost.name}' were changed")
    return _shown(vhost)


def delete_vhost(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Away with a vhost: its connections, its contents, and all permissions in it."""
    vhost = context.vhost(asked.name)
    if vhost.name == DEFAULT_VHOST:
        raise Refused(
            f"the vhost '{DEFAULT_VHOST}' is there from the start and cannot be deleted: close it "
            "with `harebell permissions clear`"
        )
    closed = context.disconnect(
        f"vhost '{vhost.name}' is deleted", lambda connection: connection.vhost is vhost
    )
    for user in context.users.all():
        about = {"user": user.name, "vhost": vhost.name}
        if user.permissions.pop(vhost.name, None) is not None:
            context.definitions.drop("permission", (vhost.name, user.name))
            context.broker.events.note("permission.deleted", about)
        topics = user.topic_permissions.pop(vhost.name, {})
        for exchange in topics:
            context.definitions.drop("topic_permission", (vhost.name, user.name, exchange))
        if topics:
            context.broker.events.note("topic.permission.deleted", about)
    context.broker.delete_vhost(vhost)
    context.log("info", f"vhost '{vhost.name}' was deleted")
    return {"name": vhost.name, "connections_closed": closed}


COMMANDS = {
    "vhosts.list": Command(Fields, list_vhosts),
    "vhosts.add": Command(Described, add_vhost),
    "vhosts.set": Command(Described, set_vhost),
    "vhosts.delete": Command(Named, delete_vhost),
}
