"""`harebell stages`: batches that are staged in a running broker and not committed."""

from __future__ import annotations

import click

from harebell.cli.listing import listing
from harebell.cli.noun import Broker, Noun, asks

_SHOWN = ("vhost", "user", "publisher", "batch", "rows", "octets", "idle_seconds", "connections")
_COLUMNS = (*_SHOWN, "attempts", "committing")


@click.group(cls=Noun)
def stages() -> None:
    """Look at the batches that are staged in a running broker, and drop them."""


listing(stages, "stages.list", "staged batches", _SHOWN, _COLUMNS)


@stages.command()
@click.argument("publisher")
@click.option("--vhost", metavar="NAME", default="/", show_default=True, help="The vhost.")
@click.option("--user", metavar="NAME", help="Whose publisher, where several users have one.")
@click.option("--batch", metavar="NUMBER", type=int, help="Only this batch; else all.")
@asks
def drop(broker: Broker, publisher: str, vhost: str, user: str | None, batch: int | None) -> None:
    """Forget what a publisher has staged: it cannot be committed any more."""
    answer = broker.ask("stages.drop", publisher=publisher, vhost=vhost, user=user, batch=batch)
    rows, batches = answer["rows"], answer["batches"]
    shown = f"{batches} batch{'' if batches == 1 else 'es'}, {rows} row{'' if rows == 1 else 's'}"
    broker.tell(answer, f"what publisher '{publisher}' had staged was dropped: {shown}")
