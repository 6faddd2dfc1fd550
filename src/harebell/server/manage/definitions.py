"""Commands for definitions: `harebell definitions`."""

from __future__ import annotations

from typing import Any

from harebell.base.slices import Slices
from harebell.server.definitions.entries import DefinitionsError
from harebell.server.definitions.inward import take_in_slices
from harebell.server.definitions.outward import document_in_slices
from harebell.server.definitions.place import Place
from harebell.server.manage.site import Command, Fields, Refused, Site


class Which(Fields):
    """Of everything, or of what is declared in one vhost."""

    vhost: str | None = None


class Given(Which, kw_only=True):
    """A document."""

    definitions: dict[str, Any]


def _place(site: Site) -> Place:
    return Place(site.broker, site.users, site.definitions)


def export(site: Site, asked: Which) -> Slices[dict[str, Any]]:
    """The document."""
    vhost = None if asked.vhost is None else site.vhost(asked.vhost)
    return document_in_slices(_place(site), vhost)


def import_(site: Site, asked: Given) -> Slices[dict[str, Any]]:
    """Take a document in, all of it or nothing."""
    vhost = None if asked.vhost is None else site.vhost(asked.vhost).name
    try:
        taken = yield from take_in_slices(_place(site), asked.definitions, vhost)
    except DefinitionsError as error:
        raise Refused(str(error)) from None
    site.journal("info", f"definitions were imported: {taken}")
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
