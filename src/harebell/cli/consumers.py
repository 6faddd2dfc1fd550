"""`harebell consumers`: the consumers of a running broker."""

from __future__ import annotations

import click

from harebell.cli.listing import listing
from harebell.cli.noun import Noun

_SHOWN = ("vhost", "queue_name", "consumer_tag", "channel", "ack_required", "prefetch_count")
_COLUMNS = (
    *("vhost", "queue_name", "channel", "consumer_tag", "ack_required", "exclusive", "priority"),
    *("prefetch_count", "messages_unacknowledged", "arguments"),
)


@click.group(cls=Noun)
def consumers() -> None:
    """Look at the consumers of a running broker."""


listing(consumers, "consumers.list", "consumers", _SHOWN, _COLUMNS)
