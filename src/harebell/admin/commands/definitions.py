"""Commands for definitions: `harebell definitions`."""

from __future__ import annotations

from typing import Any

from harebell.admin.context import AdminContext, Command, Fields, Refused
from harebell.admin.definitions.entries import DefinitionsError, ImportTarget
from harebell.admin.definitions.exporter import export_in_slices
from harebell.admin.definitions.importer import import_in_slices
from harebell.base.slices import Slices


class Which(Fields):
    """Of everything, or of what is declared in one vhost."""

    vhost: str | None = None


class Given(Which, kw_only=True):
    """A document."""

    definitions: dict[str, Any]


def _target(context: AdminContext) -> ImportTarget:
    return ImportTarget(context.broker, context.users, context.definitions)


def export(context: AdminContext, asked: Which) -> Slices[dict[str, Any]]:
    """The document."""
    vhost = None if asked.vhost is None else context.vhost(asked.vhost)
    return export_in_slices(_target(context), vhost)


def import_(context: AdminContext, asked: Given) -> Slices[dict[str, Any]]:
    """Take a document in, all of it or nothing."""
    vhost = None if asked.vhost is None else context.vhost(asked.vhost).name
    try:
        taken = yield from import_in_slices(_target(context), asked.definitions, vhost)
    except DefinitionsError as error:
        raise Refused(str(error)) from None
    context.log("info", f"definitions were imported: {taken}")
    return {
        "imported": str(taken),
        "counts": taken.counts,
        "left_out": taken.left_out,
        "ignored": taken.ignored,
    }


COMMANDS = {
    "definitions.export": Command(Which, export),
    "definitions.import": Command(Given, import_),
}
