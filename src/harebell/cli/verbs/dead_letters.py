"""`harebell dead-letters export`: dead letters of a queue as a file, of JSON lines or Parquet."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import click

from harebell.admin.command import plural
from harebell.admin.limits import BROWSE_PAYLOAD_BYTES
from harebell.cli.broker_options import broker_options
from harebell.cli.nouns import RunningBroker
from harebell.cli.progress import Progress
from harebell.cli.verb import Failure, Verb, WrongUsage, echo

_ALL = "death.queue IS NOT NULL"
_PARQUET = ".parquet"
Row = dict[str, Any]
Write = Callable[[list[Row]], object]


def _export(
    data_dir: str | None,
    config_file: str | None,
    as_json: bool,
    name: str,
    file: Path,
    where: str,
    vhost: str,
) -> None:
    broker = RunningBroker(data_dir, config_file, as_json)
    asked = {"name": name, "vhost": vhost, "where": where, "truncate": BROWSE_PAYLOAD_BYTES}
    if file.exists():
        raise WrongUsage(f"{file} exists: name another file")
    form = _parquet if file.suffix == _PARQUET else _lines
    part = file.with_name(f"{file.name}.part")
    count = cut = 0
    try:
        with part.open("wb") as output, form(output) as write, Progress("exporting") as progress:
            for rows in broker.ask_rows("queues.browse", {**asked, "encoding": "base64"}):
                write([_exported(row) for row in rows])
                count += len(rows)
                cut += sum(row["payload_bytes"] > BROWSE_PAYLOAD_BYTES for row in rows)
                progress.at(count)
        # Only what is whole has the name.
        os.replace(part, file)
    except OSError as error:
        raise Failure(f"cannot write {file}: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)
    broker.print_done(
        {"file": str(file), "messages": count, "cut": cut},
        f"{plural(count, 'message')} of queue '{name}' in vhost '{vhost}': {file}",
    )
    if cut:
        echo(f"warning: {plural(cut, 'message')} had more than 1 MiB and was cut there", err=True)


def _exported(row: Row) -> Row:
    """Return a row with its body, as octets, and its headers beside the other properties."""
    headers = row["properties"].pop("headers", {})
    body = b64decode(row.pop("payload"))
    del row["payload_encoding"]
    return {**row, "headers": headers, "value": body}


@contextmanager
def _lines(output: BinaryIO) -> Iterator[Write]:
    """Write rows as lines of JSON: a body that is UTF-8 is a text, another one is base64."""
    import msgspec

    encode = msgspec.json.encode

    def text(row: Row) -> Row:
        try:
            return {**row, "value": row["value"].decode()}
        except UnicodeDecodeError:
            return {**row, "value": row["value"], "value_encoding": "base64"}

    yield lambda rows: output.writelines(encode(text(row)) + b"\n" for row in rows)


@contextmanager
def _parquet(output: BinaryIO) -> Iterator[Write]:
    """Write rows as Parquet: properties and headers are JSON."""
    import msgspec

    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise Failure("Parquet needs pyarrow: pip install 'harebell[sql]'") from None
    moment = pa.timestamp("ms", "UTC")
    kinds = {
        **{name: pa.int64() for name in ("offset", "delivery_count", "payload_bytes")},
        **{name: pa.string() for name in ("exchange", "routing_key", "state")},
        "timestamp": moment,
        "redelivered": pa.bool_(),
        "properties": pa.string(),
        "headers": pa.string(),
        "value": pa.binary(),
    }

    def column(name: str, rows: Iterable[Row]) -> Any:
        values = [row[name] for row in rows]
        if name in ("properties", "headers"):
            values = [msgspec.json.encode(value).decode() for value in values]
        elif name == "timestamp":
            values = [datetime.fromisoformat(value) if value else None for value in values]
        return pa.array(values, kinds[name])

    with pq.ParquetWriter(output, pa.schema(list(kinds.items()))) as writer:
        yield (
            lambda rows: (
                rows and writer.write(pa.record_batch({name: column(name, rows) for name in kinds}))
            )
        )


ACTIONS = (
    Verb(
        "export",
        callback=_export,
        params=[
            click.Argument(["name"]),
            click.Argument(["file"], type=click.Path(dir_okay=False, path_type=Path)),
            click.Option(
                ["--where"],
                default=_ALL,
                metavar="CONDITION",
                help="Only messages for which this condition is true.  [default: dead letters]",
            ),
            click.Option(
                ["--vhost"],
                default="/",
                show_default=True,
                metavar="NAME",
                help="The vhost it is in.",
            ),
            *broker_options(),
        ],
        help="Save the dead letters of a queue, which stay there, as lines of JSON, or as Parquet "
        "if the name of FILE ends with .parquet.",
    ),
)
