"""`harebell publish`: publish messages; exit code 0 only if the broker has confirmed all."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any, BinaryIO

import click

from harebell.cli.link import channel_to, url_flag, version_flag
from harebell.cli.number_flag import number_flag
from harebell.cli.progress import Progress
from harebell.cli.properties import properties_of, property_flags
from harebell.cli.verb import Failure, Verb, echo
from harebell.client.blocking import Channel
from harebell.client.errors import BulkPublishFailed, PublishReturned

_STDIN = "-"
_WITHOUT_RETURNS = "0-10t"
"""The version of AMQP without returns of unroutable messages."""
_SAFE = {True: "confirmed", False: "committed"}


@click.command(cls=Verb)
@click.argument("body", required=False)
@url_flag
@version_flag
@click.option("-e", "--exchange", default="", metavar="NAME", help="Exchange to publish to.")
@click.option(
    "-r",
    "--routing-key",
    default="",
    metavar="KEY",
    help="Routing key; with the default exchange it is the name of a queue.",
)
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="Take the body from a file, - is standard input. May be repeated: a message each.",
)
@click.option("--lines", is_flag=True, help="Every line of the input is a message.")
@number_flag("--count", "Publish everything that many times.", 1)
@click.option(
    "--mandatory/--no-mandatory",
    default=None,
    help="Fail if a message reaches no queue.  [default: mandatory, where the version has it]",
)
@property_flags
def publish(
    body: str | None,
    url: str | None,
    version: str | None,
    exchange: str,
    routing_key: str,
    files: tuple[str, ...],
    lines: bool,
    count: int,
    mandatory: bool | None,
    **given: Any,
) -> None:
    """Publish messages and wait for the confirms.

    In a version of AMQP without confirms, all messages are published in one transaction. The body
    is BODY, or comes from --file, or else from standard input.
    """
    if body is not None and files:
        raise click.UsageError("BODY and --file both give a body: use one of them")
    if not exchange and not routing_key:
        raise click.UsageError(
            "Where to? The default exchange needs the name of a queue: add --routing-key QUEUE, "
            "or name another exchange with --exchange"
        )
    properties = properties_of(given)
    bodies = repeated(bodies_of(body, files, lines), count)
    with channel_to(url, version) as channel:
        returns = channel.connection.url.version != _WITHOUT_RETURNS
        asked = returns if mandatory is None else mandatory
        try:
            # Who types the bodies sees what was typed, and no other line.
            typed = body is None and not files and sys.stdin.isatty()
            with nullcontext() if typed else Progress("publishing") as progress:
                if progress is not None:
                    bodies = counted(bodies, progress, count if body and not lines else 0)
                sent = _sent(channel, bodies, exchange, routing_key, asked, properties)
        except BulkPublishFailed as error:
            position, why = error.failures[0]
            returned = isinstance(why, PublishReturned)
            verdict = "is unroutable and was returned" if returned else "was not taken"
            advice = _advice(exchange, routing_key) if returned else ""
            raise Failure(
                f"message {position + 1} {verdict}: {why}; confirmed: {error.confirmed}{advice}"
            ) from None
        except UnicodeEncodeError:
            raise Failure("a name or a value is not UTF-8: write it in UTF-8") from None
        except ValueError as error:
            raise Failure(f"cannot encode the message: {error}") from None
    where = f"exchange {exchange!r}" if exchange else f"queue {routing_key!r}"
    what = "1 message" if sent == 1 else f"{sent} messages"
    echo(f"{what} published to {where} and {_SAFE[channel.confirms]}")
    if mandatory is None and not returns:
        echo("AMQP 0-10t does not say whether any queue took them", err=True)


def _advice(exchange: str, routing_key: str) -> str:
    """Return a hint how unroutable messages can reach a queue."""
    if exchange:
        way = f"bind a queue with `harebell bindings add {_word(exchange)} QUEUE`"
    else:
        way = f"`harebell queues declare {_word(routing_key)}` makes that queue"
    return f". {way}, and --no-mandatory drops what is unroutable"


def _word(name: str) -> str:
    """Return a name as a shell takes it; one that does not print stays a placeholder."""
    return shlex.quote(name) if name.isprintable() else "NAME"


def _sent(
    channel: Channel,
    bodies: Iterable[bytes],
    exchange: str,
    routing_key: str,
    mandatory: bool,
    properties: dict[str, Any],
) -> int:
    """Publish all messages; return how many the broker has confirmed or committed.

    Raises:
        Failure: a message was returned, in a version of AMQP without confirms.
        BulkPublishFailed: a message was not confirmed, in a version with confirms.
    """
    returned: list[PublishReturned] = []

    def publish_all() -> int:
        return channel.publish_many(
            bodies,
            exchange=exchange,
            routing_key=routing_key,
            mandatory=mandatory,
            **properties,
        )

    if channel.confirms:
        return publish_all()
    # Versions without confirms: the commit of a transaction takes the place of a confirm.
    channel.on_return = returned.append
    with channel.transaction():
        sent = publish_all()
    if returned:
        raise Failure(
            f"{len(returned)} of {sent} messages are unroutable and came back: {returned[0]}; "
            f"committed: {sent - len(returned)}{_advice(exchange, routing_key)}"
        )
    return sent


def counted(bodies: Iterable[bytes], progress: Progress, total: int) -> Iterator[bytes]:
    """Yield bodies, and note how many there were."""
    for number, body in enumerate(bodies):
        progress.at(number, total)
        yield body


def repeated(bodies: Iterable[bytes], count: int) -> Iterator[bytes]:
    """Yield all bodies `count` times."""
    kept = list(bodies) if count > 1 else bodies
    for _ in range(count):
        yield from kept


def bodies_of(body: str | None, files: tuple[str, ...], lines: bool) -> Iterator[bytes]:
    """Yield the bodies to publish; files are read lazily.

    Raises:
        Failure: a file cannot be read.
    """
    if body is not None:
        # Python decodes arguments that are not UTF-8 with surrogates; restore the original bytes.
        data = body.encode("utf-8", "surrogateescape")
        yield from data.splitlines() if lines else (data,)
        return
    for name in files or (_STDIN,):
        try:
            if name == _STDIN:
                yield from _split(_standard_input(), lines)
            else:
                with open(name, "rb") as file:
                    yield from _split(file, lines)
        except OSError as error:
            raise Failure(f"cannot read {name}: {error.strerror or error}") from None


def _standard_input() -> BinaryIO:
    if sys.stdin.isatty():
        echo("reading the body from the terminal; end with Ctrl-D", err=True)
    return sys.stdin.buffer


def _split(file: BinaryIO, lines: bool) -> Iterator[bytes]:
    if not lines:
        yield file.read()
        return
    for line in file:
        yield line.removesuffix(b"\n").removesuffix(b"\r")
