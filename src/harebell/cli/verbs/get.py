"""`harebell get`: get messages from a queue without waiting for more."""

from __future__ import annotations

import click

from harebell.cli.link import channel_to, url_flag, version_flag
from harebell.cli.number_flag import number_flag
from harebell.cli.show import output_flag, show
from harebell.cli.verb import Failure, Verb
from harebell.client.blocking import Channel
from harebell.client.errors import UnsupportedByVersion


@click.command(cls=Verb)
@url_flag
@version_flag
@click.option("-q", "--queue", required=True, metavar="NAME", help="Queue to take from.")
@number_flag("--count", "Most messages to take.", 1)
@click.option("--requeue", is_flag=True, help="Put the messages back after showing them.")
@output_flag
def get(
    url: str | None, version: str | None, queue: str, count: int, requeue: bool, output: str
) -> None:
    """Take messages from a queue, if there are any.

    It fails if the queue is empty.
    """
    tags: list[int] = []
    with channel_to(url, version) as channel:
        for _ in range(count):
            message = channel.get(queue)
            if message is None:
                break
            show(message, output)
            tags.append(message.delivery_tag)
            if not requeue:
                message.ack()
        if tags and requeue:
            _put_back(channel, tags)
    if not tags:
        raise Failure(f"queue {queue!r} is empty")


def _put_back(channel: Channel, tags: list[int]) -> None:
    """Requeue all messages at the end; an earlier requeue would make `get` return them again."""
    try:
        channel.nack(tags[-1], multiple=True)
    except UnsupportedByVersion:
        for tag in tags:
            channel.reject(tag, requeue=True)
