"""`harebell channels`: the channels of a running broker."""

from __future__ import annotations

import click

from harebell.cli.listing import listing
from harebell.cli.noun import Noun

_SHOWN = ("name", "user", "vhost", "consumer_count", "messages_unacknowledged", "prefetch_count")
_COLUMNS = (
    *("name", "connection", "number", "user", "vhost", "transactional", "confirm"),
    *("consumer_count", "messages_unacknowledged", "messages_unconfirmed"),
    *("messages_uncommitted", "acks_uncommitted", "prefetch_count", "global_prefetch_count"),
)


@click.group(cls=Noun)
def channels() -> None:
    """Look at the channels of a running broker."""


listing(channels, "channels.list", "channels", _SHOWN, _COLUMNS)
