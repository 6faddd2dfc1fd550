"""`harebell definitions`: export the definitions of a broker to a file, and import them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from harebell.admin.catalog import DEFINITIONS
from harebell.cli.broker_options import broker_options
from harebell.cli.nouns import RunningBroker
from harebell.cli.progress import Progress
from harebell.cli.verb import Failure, Verb, WrongUsage, echo
from harebell.cluster.limits import CONTROL_IMPORT_SECONDS

_STANDARD = "-"
_OWNER_ONLY = 0o600


def _export(
    data_dir: str | None, config_file: str | None, as_json: bool, file: str, vhost: str | None
) -> None:
    import msgspec

    broker = RunningBroker(data_dir, config_file, as_json)
    with Progress("exporting definitions"):
        answer = broker.ask("definitions.export", _only(vhost))
    data = msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n"
    if file == _STANDARD:
        echo(data.decode(), nl=False)
        return
    try:
        # The file has password hashes, so it is created with mode 0600 before anything is written.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
        with os.fdopen(handle, "wb") as out:
            out.write(data)
    except OSError as error:
        raise Failure(f"cannot write {file}: {error.strerror or error}") from None
    broker.print_done({"file": file, **counts(answer)}, f"definitions were written to {file}")


def _import(
    data_dir: str | None, config_file: str | None, as_json: bool, file: str, vhost: str | None
) -> None:
    from harebell.admin.definitions.entries import DefinitionsError
    from harebell.admin.definitions.importer import parse

    try:
        text = sys.stdin.buffer.read() if file == _STANDARD else Path(file).read_bytes()
        document = parse(text)
    except OSError as error:
        raise WrongUsage(f"cannot read {file}: {error.strerror or error}") from None
    except DefinitionsError as error:
        raise Failure(f"{file}: {error}") from None
    broker = RunningBroker(data_dir, config_file, as_json)
    given = {"definitions": document, **_only(vhost)}
    with Progress(f"importing {file}"):
        imported = broker.ask("definitions.import", given, CONTROL_IMPORT_SECONDS)
    broker.print_done(imported, f"imported: {imported['imported']}")
    for sentence in imported["left_out"]:
        echo(f"left out: {sentence}", err=True)
    for sentence in imported.get("ignored", ()):
        echo(f"kept: {sentence}", err=True)


def _only(vhost: str | None) -> dict[str, Any]:
    return {} if vhost is None else {"vhost": vhost}


def counts(document: dict[str, Any]) -> dict[str, int]:
    """Return the number of entries in each section of a document."""
    return {name: len(part) for name, part in document.items() if isinstance(part, list)}


ACTIONS = {
    verb: Verb(
        verb,
        callback=callback,
        params=[
            click.Argument(["file"], default=_STANDARD),
            click.Option(["--vhost"], metavar="NAME", help="Only what is declared in this vhost."),
            *broker_options(),
        ],
        help=DEFINITIONS.commands[verb].summary,
    )
    for verb, callback in (("export", _export), ("import", _import))
}
