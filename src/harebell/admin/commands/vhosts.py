"""Commands for vhosts, and for tracing all messages of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from harebell.admin.catalog import TRACE, VHOSTS
from harebell.admin.command import ADMINISTRATOR, MANAGEMENT, Argument, Form, Row
from harebell.admin.commands.users import closed_clause
from harebell.admin.context import AdminContext, CommandRefused, checked_name
from harebell.admin.limits import VHOST_NAME_BYTES
from harebell.admin.place import END_OF_VHOST, NEW_VHOST
from harebell.base.errors import ErrorKind
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.model.settings.metadata import Metadata
    from harebell.model.vhost import VHost

_PROTECTION = "deletion-protection"
"""The component and the name of the parameter that keeps a vhost from being deleted."""
Description = Annotated[str | None, Argument("For users.", "TEXT")]
Tags = Annotated[
    list[str] | None, Argument("Tags, with commas between them.", "TAG,...", Form.WORDS)
]
QueueType = Annotated[
    str | None,
    Argument("Type of queues declared without one: classic, quorum or stream.", "TYPE"),
]
Durability = Annotated[
    str | None,
    Argument("What a confirm waits for: fsync, interval, interval:MILLISECONDS or os.", "WORD"),
]
_COUNTED = (
    *("messages_details", "messages_ready_details", "messages_unacknowledged_details"),
    *("message_stats", "recv_oct", "recv_oct_details", "send_oct", "send_oct_details"),
)
"""Members that `stats_of` counts."""
_COLUMNS = (
    *("name", "store", "description", "tags", "default_queue_type", "durability", "tracing"),
    *("queues", "exchanges", "messages", "messages_ready", "messages_unacknowledged"),
    *(*_COUNTED, "cluster_state", "metadata"),
)
"""A vhost, and how much is in it."""
_SHOWN = (
    *("name", "description", "tags", "default_queue_type", "durability", "tracing"),
    *("queues", "exchanges", "messages"),
)


def _row(context: AdminContext, vhost: VHost, stats: Row | None = None) -> Slices[Row]:
    """Return a vhost; `stats` are those of `stats_of`, if it is one of several."""
    from harebell.admin.commands.overview import stats_of, totals_of

    metadata = vhost.metadata
    counted = (yield from stats_of(context, [vhost]))[vhost.name] if stats is None else stats
    totals = yield from totals_of([vhost])
    return {
        "name": vhost.name,
        "store": context.store,
        "description": metadata.description,
        "tags": list(metadata.tags),
        "default_queue_type": metadata.default_queue_type,
        "durability": metadata.durability,
        "tracing": metadata.tracing,
        "queues": len(vhost.queues),
        "exchanges": len(vhost.exchanges),
        "messages": totals.ready + totals.unacknowledged + totals.leased,
        "messages_ready": totals.ready,
        "messages_unacknowledged": totals.unacknowledged,
        **{name: counted[name] for name in _COUNTED},
        "cluster_state": {context.broker.events.node: "running"},
        "metadata": {
            "description": metadata.description,
            "tags": list(metadata.tags),
            "default_queue_type": metadata.default_queue_type,
        },
    }


@VHOSTS.listing("vhosts", "GET /api/vhosts", tag=MANAGEMENT, row=_COLUMNS, shown=_SHOWN)
def list_vhosts(context: AdminContext) -> Slices[list[Row]]:
    """List vhosts by name."""
    from harebell.admin.commands.overview import stats_of

    vhosts = context.vhosts(None)
    stats = yield from stats_of(context, vhosts)
    rows = []
    for vhost in vhosts:
        row = yield from _row(context, vhost, stats[vhost.name])
        rows.append(row)
    return rows


@VHOSTS.command("GET /api/vhosts/{name}", tag=MANAGEMENT)
def show(context: AdminContext, name: str) -> Slices[Row]:
    """Show the vhost NAME."""
    vhost = context.vhost(name)
    if not context.may_see(name):
        raise CommandRefused("User not authorised to access virtual host", ErrorKind.ACCESS_REFUSED)
    return _row(context, vhost)


def _changed(
    before: Metadata,
    description: str | None,
    tags: list[str] | None,
    default_queue_type: str | None,
    durability: str | None,
) -> Metadata:
    """Replace the given members of metadata; None keeps a member."""
    from harebell.model.settings.metadata import Metadata

    return Metadata(
        before.description if description is None else description,
        before.tags if tags is None else tuple(dict.fromkeys(tags)),
        before.default_queue_type if default_queue_type is None else default_queue_type,
        before.durability if durability is None else durability,
        before.tracing,
    )


@VHOSTS.command(tag=ADMINISTRATOR, done="vhost '{name}' was added", place=NEW_VHOST)
def add(
    context: AdminContext,
    name: str,
    description: Description = None,
    tags: Tags = None,
    default_queue_type: QueueType = None,
    durability: Durability = None,
    store: Annotated[
        int | None, Argument("The store of a cluster that it lives in.", "NUMBER")
    ] = None,
) -> Slices[Row]:
    """Add a vhost, which no user may open until there are permissions."""
    from harebell.model.settings.metadata import Metadata

    checked_name(name, "vhost", VHOST_NAME_BYTES)
    if name in context.broker.vhosts:
        raise CommandRefused(f"there is a vhost '{name}' already: choose another name")
    if store is not None:
        context.operation.check_store(store)
    metadata = _changed(Metadata(), description, tags, default_queue_type, durability)
    vhost = context.broker.add_vhost(name, metadata)
    context.log(
        "info",
        f"Adding vhost '{name}' (description: '{metadata.description}', tags: "
        f"[{','.join(metadata.tags)}])",
    )
    return _row(context, vhost)


@VHOSTS.command(verb="set", tag=ADMINISTRATOR, done="vhost '{name}' was changed")
def set_vhost(
    context: AdminContext,
    name: str,
    description: Description = None,
    tags: Tags = None,
    default_queue_type: QueueType = None,
    durability: Durability = None,
) -> Slices[Row]:
    """Change the metadata of a vhost; an empty text removes it."""
    vhost = context.vhost(name)
    vhost.set_metadata(_changed(vhost.metadata, description, tags, default_queue_type, durability))
    context.log("info", f"the metadata of vhost '{vhost.name}' were changed")
    return _row(context, vhost)


@VHOSTS.command(
    "POST /api/vhosts/{name}/deletion/protection",
    tag=ADMINISTRATOR,
    done="vhost '{name}' cannot be deleted now",
)
def protect(context: AdminContext, name: str) -> Row:
    """Keep a vhost from being deleted."""
    context.vhost(name).parameters.put(_PROTECTION, _PROTECTION, True)
    context.log("info", f"vhost '{name}' was protected from deletion")
    return {"name": name}


@VHOSTS.command(
    "DELETE /api/vhosts/{name}/deletion/protection",
    tag=ADMINISTRATOR,
    done="vhost '{name}' can be deleted again",
)
def unprotect(context: AdminContext, name: str) -> Row:
    """Let a vhost be deleted again."""
    context.vhost(name).parameters.delete(_PROTECTION, _PROTECTION)
    context.log("info", f"vhost '{name}' is no longer protected from deletion")
    return {"name": name}


@VHOSTS.command(
    "DELETE /api/vhosts/{name}",
    tag=ADMINISTRATOR,
    place=END_OF_VHOST,
    done=lambda outcome: f"vhost '{outcome['name']}' was deleted{closed_clause(outcome)}",
)
def delete(context: AdminContext, name: str) -> Slices[Row]:
    """Delete a vhost with everything in it, and close its connections."""
    from harebell.model.broker import DEFAULT_VHOST

    vhost = context.vhost(name)
    if vhost.parameters.values.get((_PROTECTION, _PROTECTION)):
        raise CommandRefused(
            f"vhost '{name}' is protected from deletion: `harebell vhosts unprotect` ends that"
        )
    if vhost.name == DEFAULT_VHOST:
        raise CommandRefused(
            f"the vhost '{DEFAULT_VHOST}' is there from the start and cannot be deleted: close it "
            "with `harebell permissions clear`"
        )
    reason = f"vhost '{vhost.name}' is deleted"
    closed = yield from context.disconnect(reason, lambda each: each.vhost is vhost)
    vhost.ending = True
    try:
        yield from vhost.emptied()
        if context.vhost(name) is not vhost:
            raise CommandRefused(f"vhost '{name}' was deleted and made again meanwhile")
        with context.definitions.whole():
            _unstore_permissions(context, vhost.name)
            context.broker.delete_vhost(vhost, lambda: _forget_permissions(context, vhost.name))
    finally:
        # For clients of a vhost that could not be deleted.
        vhost.ending = False
    context.log("info", f"Deleting vhost '{vhost.name}'")
    return {"name": vhost.name, "connections_closed": closed}


def _unstore_permissions(context: AdminContext, vhost: str) -> None:
    """Remove the rows of what users may do in a vhost that is deleted."""
    definitions = context.definitions
    for user in context.users.all():
        if vhost in user.permissions:
            definitions.drop("permission", (vhost, user.name))
        for exchange in user.topic_permissions.get(vhost, ()):
            definitions.drop("topic_permission", (vhost, user.name, exchange))


def _forget_permissions(context: AdminContext, vhost: str) -> None:
    """Remove what users may do in a vhost that was deleted."""
    events = context.broker.events
    for user in context.users.all():
        about = {"user": user.name, "vhost": vhost}
        if user.permissions.pop(vhost, None) is not None:
            events.note("permission.deleted", about)
        if user.topic_permissions.pop(vhost, None):
            events.note("topic.permission.deleted", about)


# --- tracing --------------------------------------------------------------------------------------

ForVhost = Annotated[str, Argument("The vhost it is for.", "NAME")]


def _trace(context: AdminContext, name: str, *, on: bool) -> Slices[Row]:
    from msgspec.structs import replace

    vhost = context.vhost(name)
    vhost.set_metadata(replace(vhost.metadata, tracing=on))
    context.log("info", f"the metadata of vhost '{vhost.name}' were changed")
    return _row(context, vhost)


@TRACE.command(verb="on", tag=ADMINISTRATOR, done="tracing of vhost '{vhost}' is on")
def trace_on(context: AdminContext, vhost: ForVhost = "/") -> Slices[Row]:
    """Begin to trace a vhost, also after a restart, until `trace off`."""
    return _trace(context, vhost, on=True)


@TRACE.command(verb="off", tag=ADMINISTRATOR, done="tracing of vhost '{vhost}' is off")
def trace_off(context: AdminContext, vhost: ForVhost = "/") -> Slices[Row]:
    """Stop tracing a vhost."""
    return _trace(context, vhost, on=False)


# --- over HTTP ------------------------------------------------------------------------------------


@VHOSTS.over_http("PUT /api/vhosts/{name}", tag=ADMINISTRATOR, place=NEW_VHOST)
def put(
    context: AdminContext,
    name: str,
    description: str | None = None,
    tags: str | list[str] | None = None,
    default_queue_type: str | None = None,
    durability: str | None = None,
    tracing: bool | None = None,
    store: int | None = None,
) -> Row:
    """Add a vhost, or change what is given of one.

    The user of the request gets all permissions in a new vhost. In a cluster of several stores it
    is made in the one that is given.
    """
    if default_queue_type == "undefined":
        default_queue_type = ""  # RabbitMQ writes so that there is none
    if tags is not None:
        words = tags.split(",") if isinstance(tags, str) else tags
        tags = [word.strip() for word in words if word.strip()]
    made = name not in context.broker.vhosts
    if made:
        add(context, name, description, tags, default_queue_type, durability, store)
    elif store is not None and store != context.store:
        raise CommandRefused(f"vhost '{name}' is in store {context.store}, where it stays")
    else:
        set_vhost(context, name, description, tags, default_queue_type, durability)
    actor = context.actor
    if made and actor is not None and actor is context.users.get(actor.name):
        # The permissions of a user of another backend are that backend's.
        from harebell.admin.commands.permissions import set_permissions

        set_permissions(context, actor.name, ".*", ".*", ".*", name)
    if tracing is not None:
        (trace_on if tracing else trace_off)(context, name)
    return {"name": name, "made": made}


@VHOSTS.over_http("POST /api/vhosts/{name}/start/{node}", tag=ADMINISTRATOR)
def start(context: AdminContext, name: str, node: str) -> Row:
    """Start a vhost: it runs already."""
    context.vhost(name)
    context.check_node(node)
    return {}
