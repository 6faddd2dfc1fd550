"""`harebell vhosts`: the vhosts of a running broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from harebell.cli.noun import Broker, Noun, asks, closed

_COLUMNS = (
    "name",
    "description",
    "tags",
    "default_queue_type",
    "durability",
    "tracing",
    "queues",
    "exchanges",
    "messages",
)


def _metadata(function: Callable[..., None]) -> Callable[..., None]:
    """The flags for what a vhost is told about itself."""
    flags = (
        click.option("--description", metavar="TEXT", help="For users."),
        click.option("--tags", metavar="TAG,...", help="Tags, with commas between them."),
        click.option(
            "--default-queue-type",
            metavar="TYPE",
            help="Type of queues declared without one: classic, quorum or stream.",
        ),
        click.option(
            "--durability",
            metavar="WORD",
            help="What a confirm waits for: fsync, interval, interval:MILLISECONDS or os.",
        ),
    )
    for flag in reversed(flags):
        flag(function)
    return function


def _given(tags: str | None, **fields: Any) -> dict[str, Any]:
    split = None if tags is None else [tag.strip() for tag in tags.split(",") if tag.strip()]
    return {"tags": split, **fields}


@click.group(cls=Noun)
def vhosts() -> None:
    """Manage the vhosts of a running broker."""


@vhosts.command("list")
@asks
def list_(broker: Broker) -> None:
    """Print all vhosts."""
    broker.table(broker.ask("vhosts.list"), _COLUMNS)


@vhosts.command()
@click.argument("name")
@_metadata
@asks
def add(broker: Broker, name: str, **metadata: Any) -> None:
    """Add a vhost, which nobody may open until there are permissions."""
    answer = broker.ask("vhosts.add", name=name, **_given(**metadata))
    broker.tell(answer, f"vhost '{name}' was added")


@vhosts.command("set")
@click.argument("name")
@_metadata
@asks
def set_(broker: Broker, name: str, **metadata: Any) -> None:
    """Change what a vhost is told about itself; an empty text takes it away."""
    answer = broker.ask("vhosts.set", name=name, **_given(**metadata))
    broker.tell(answer, f"vhost '{name}' was changed")


@vhosts.command()
@click.argument("name")
@asks
def delete(broker: Broker, name: str) -> None:
    """Delete a vhost with everything in it, and close its connections."""
    answer = broker.ask("vhosts.delete", name=name)
    broker.tell(answer, f"vhost '{name}' was deleted{closed(answer)}")
