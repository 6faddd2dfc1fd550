"""Commands for definitions: the objects that are declared in a broker, as RabbitMQ's JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.catalog import DEFINITIONS
from harebell.admin.command import ADMINISTRATOR, Argument, Row
from harebell.admin.context import AdminContext, CommandRefused
from harebell.admin.place import IN_PARTS, SECTIONS
from harebell.base.slices import Slices, emptied

if TYPE_CHECKING:
    from harebell.admin.definitions.entries import ImportTarget

OnlyVhost = Annotated[str | None, Argument("Only what is declared in this vhost.", "NAME")]


def _target(context: AdminContext) -> ImportTarget:
    from harebell.admin.definitions.entries import ImportTarget

    return ImportTarget(context.broker, context.users, context.definitions)


@DEFINITIONS.command(
    "GET /api/definitions: Return users, permissions, policies, vhosts and what is in them.",
    "GET /api/definitions/{vhost}: Return the policies, queues, exchanges and bindings of a vhost.",
    "GET /api/all-configuration: Return the same as `/api/definitions`.",
    tag=ADMINISTRATOR,
    merge=SECTIONS,
)
def export(context: AdminContext, vhost: OnlyVhost = None) -> Slices[Row]:
    """Write users, vhosts, permissions, policies, queues, exchanges and bindings to FILE.

    Without FILE they are printed. Passwords are written as their hashes.
    """
    from harebell.admin.definitions.exporter import export_in_slices

    only = None if vhost is None else context.vhost(vhost)
    return export_in_slices(_target(context), only)


def _released(definitions: dict[str, Any]) -> Slices[None]:
    """Free a document in slices."""
    for section in definitions.values():
        if isinstance(section, list):
            yield from emptied(section)


@DEFINITIONS.over_http(tag=ADMINISTRATOR, verb="try", place=IN_PARTS)
def try_(
    context: AdminContext, definitions: Annotated[dict[str, Any], Argument(body=True)]
) -> Slices[Row]:
    """Say whether an import of definitions would be refused, and change nothing."""
    from harebell.admin.definitions.entries import DefinitionsError
    from harebell.admin.definitions.importer import try_in_slices

    try:
        yield from try_in_slices(_target(context), definitions)
    except DefinitionsError as error:
        raise CommandRefused(str(error)) from None
    return {}


@DEFINITIONS.command(
    "POST /api/definitions: Import the definitions in the body, all of them or none.",
    "POST /api/definitions/{vhost}: Import definitions into a vhost, all of them or none.",
    "POST /api/all-configuration: Do the same as `POST /api/definitions`.",
    tag=ADMINISTRATOR,
    place=IN_PARTS,
)
def import_(
    context: AdminContext,
    definitions: Annotated[dict[str, Any], Argument(body=True)],
    vhost: OnlyVhost = None,
) -> Slices[Row]:
    """Take in what FILE declares, all of it or nothing; without FILE, from standard input."""
    from harebell.admin.definitions.entries import DefinitionsError
    from harebell.admin.definitions.importer import import_in_slices

    only = None if vhost is None else context.vhost(vhost).name
    try:
        imported = yield from import_in_slices(_target(context), definitions, only)
    except DefinitionsError as error:
        yield from _released(definitions)
        raise CommandRefused(str(error)) from None
    yield from _released(definitions)
    context.log("info", f"definitions were imported: {imported}")
    return {
        "imported": str(imported),
        "counts": imported.counts,
        "left_out": imported.left_out,
        "ignored": imported.ignored,
    }
