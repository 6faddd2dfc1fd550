"""`harebell bindings`: the bindings of a running broker."""

from __future__ import annotations

import click

from harebell.cli.listing import listing
from harebell.cli.noun import Noun

_SHOWN = ("vhost", "source_name", "destination_kind", "destination_name", "routing_key")
_COLUMNS = (
    *("vhost", "source_name", "source_kind", "destination_name", "destination_kind"),
    *("routing_key", "arguments"),
)


@click.group(cls=Noun)
def bindings() -> None:
    """Look at the bindings of a running broker."""


listing(bindings, "bindings.list", "bindings", _SHOWN, _COLUMNS)
