"""`harebell definitions`: what is declared in a broker, as RabbitMQ's JSON."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from harebell.base.limits import CONTROL_IMPORT_SECONDS
from harebell.cli.echo import echo
from harebell.cli.failure import Failure, WrongUsage
from harebell.cli.noun import Broker, Noun, asks

_STANDARD = "-"
_OWNER_ONLY = 0o600
_VHOST = click.option("--vhost", metavar="NAME", help="Only what is declared in this vhost.")


@click.group(cls=Noun)
def definitions() -> None:
    """Carry what is declared from one broker to another, also from and to RabbitMQ."""


@definitions.command()
@click.argument("file", default=_STANDARD)
@_VHOST
@asks
def export(broker: Broker, file: str, vhost: str | None) -> None:
    """Write users, vhosts, permissions, policies, queues, exchanges and bindings to FILE.

    Without FILE they are printed. Passwords are written as their hashes.
    """
    import msgspec

    answer = broker.ask("definitions.export", vhost=vhost)
    octets = msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n"
    if file == _STANDARD:
        echo(octets.decode(), nl=False)
        return
    try:
        # Hashes of passwords are nobody else's business, from the first octet on.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
        with os.fdopen(handle, "wb") as out:
            out.write(octets)
    except OSError as error:
        raise Failure(f"cannot write {file}: {error.strerror or error}") from None
    broker.tell({"file": file, **counts(answer)}, f"definitions were written to {file}")


@definitions.command("import")
@click.argument("file", default=_STANDARD)
@_VHOST
@asks
def import_(broker: Broker, file: str, vhost: str | None) -> None:
    """Take in what FILE declares, all of it or nothing; without FILE, from standard input."""
    from harebell.admin.definitions.entries import DefinitionsError
    from harebell.admin.definitions.importer import parse

    try:
        text = sys.stdin.buffer.read() if file == _STANDARD else Path(file).read_bytes()
        document = parse(text)
    except OSError as error:
        raise WrongUsage(f"cannot read {file}: {error.strerror or error}") from None
    except DefinitionsError as error:
        raise Failure(f"{file}: {error}") from None
    taken = broker.ask(
        "definitions.import", patience=CONTROL_IMPORT_SECONDS, definitions=document, vhost=vhost
    )
    broker.tell(taken, f"imported: {taken['imported']}")
    for sentence in taken["left_out"]:
        echo(f"left out: {sentence}", err=True)
    for sentence in taken.get("ignored", ()):
        echo(f"kept: {sentence}", err=True)


def counts(document: dict[str, Any]) -> dict[str, int]:
    """How many entries the sections of a document have."""
    return {name: len(part) for name, part in document.items() if isinstance(part, list)}
