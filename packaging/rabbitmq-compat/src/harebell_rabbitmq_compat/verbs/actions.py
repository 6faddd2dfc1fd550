"""Purge and delete queues, close connections, export and import definitions."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from harebell_rabbitmq_compat.exits import DATA, UNAVAILABLE, USAGE, VerbFailed, WrongArguments
from harebell_rabbitmq_compat.node import CommandRefused
from harebell_rabbitmq_compat.verb import CTL, UPGRADE, Call, Result, verb

_IMPORT_SECONDS = 600.0
_STANDARD = "-"


@verb("<queue> [--vhost <vhost>]", tools=CTL, banner="Purging queue '{0}' in vhost '{vhost}' ...")
def purge_queue(call: Call) -> None:
    """Drop the ready messages of a queue."""
    try:
        call.node.ask("queues.purge", name=call.arguments[0], vhost=call.vhost)
    except CommandRefused as refusal:
        missing = str(refusal).startswith(("no queue ", "no vhost "))
        raise VerbFailed("not_found" if missing else str(refusal), UNAVAILABLE) from None


def _conditions(call: Call) -> str:
    words = [word for word in ("empty", "unused") if call.flags.get(f"if-{word}")]
    return f"if queue is {' and '.join(words)} " if words else ""


@verb(
    "[--vhost <vhost>] <queue_name> [--if-empty|-e] [--if-unused|-u]",
    tools=CTL,
    banner=lambda call: (
        f"Deleting queue '{call.arguments[0]}' on vhost '{call.vhost}' {_conditions(call)}..."
    ),
)
def delete_queue(call: Call) -> str:
    """Delete a queue."""
    empty, unused = bool(call.flags.get("if-empty")), bool(call.flags.get("if-unused"))
    try:
        answer = call.node.ask(
            "queues.delete",
            name=call.arguments[0],
            vhost=call.vhost,
            if_empty=empty,
            if_unused=unused,
        )
    except CommandRefused as refusal:
        raise VerbFailed(_why_not_deleted(str(refusal)), USAGE) from None
    return f"Queue was successfully deleted with {answer['messages']} ready messages"


def _why_not_deleted(reason: str) -> str:
    if reason.startswith(("no queue ", "no vhost ")):
        return "Queue not found"
    if "empty" in reason:
        return "Queue is not empty"
    return "Queue is in use" if "in use" in reason or "consumer" in reason else reason


@verb(
    "[--vhost <vhost> --limit <limit>] [-n <node> --global] [--per-connection-delay <delay>] "
    "<explanation>",
    flags={"limit": int, "global": bool, "per-connection-delay": int},
    tools=CTL,
    banner=lambda call: (
        f"Closing all connections in vhost {call.vhost}, reason: {call.arguments[0]}..."
        if "vhost" in call.flags
        else f"Closing all connections to node {call.node.name} (optionally applying "
        f"per-connection delay), reason: {call.arguments[0]}..."
    ),
)
def close_all_connections(call: Call) -> str:
    """Close all connections, or those to a vhost."""
    import time

    reason, vhost = call.arguments[0], call.flags.get("vhost")
    limit, delay = call.flags.get("limit", 0), call.flags.get("per-connection-delay", 0)
    if not limit and not delay:
        answer = call.ask("connections.close-all", vhost=vhost, reason=reason)
        return f"Closed {answer['connections_closed']} connections"
    rows = call.ask("connections.list", vhost=vhost)
    chosen = rows[:limit] if limit else rows
    for row in chosen:
        call.ask("connections.close", name=row["name"], reason=reason)
        time.sleep(delay / 1000)
    return f"Closed {len(chosen)} connections"


@verb(
    tools=UPGRADE,
    banner="Will put node {node} into maintenance mode. The node will no longer serve any "
    "client traffic!",
)
def drain(call: Call) -> None:
    """Close the ports for AMQP and all connections."""
    call.ask("listeners.suspend")
    call.ask("connections.close-all", reason="Node was put into maintenance mode")


def _banner_of_export(call: Call) -> str:
    name = call.arguments[0]
    return "" if name == _STANDARD else f'Exporting definitions in JSON to a file at "{name}" ...'


@verb(
    '<file_path | "-"> [--format <json | erlang>] [--timeout <timeout>]',
    tools=CTL,
    banner=_banner_of_export,
)
def export_definitions(call: Call) -> Result:
    """Write definitions in JSON to a file, or to standard output."""
    import os

    file = call.arguments[0]
    _only_json(call)
    if file != _STANDARD and not Path(file).resolve().parent.is_dir():
        raise WrongArguments(
            f"Bad argument: Directory {Path(file).resolve().parent} does not exist", DATA
        )
    document = call.ask("definitions.export")
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    if file == _STANDARD:
        return text
    try:
        # The file has hashes of passwords: only its owner may read it.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise VerbFailed(f"cannot write {file}: {error.strerror or error}", DATA) from None
    return None


def _only_json(call: Call) -> None:
    if call.flags.get("format", "json").lower() != "json":
        raise WrongArguments("Bad argument: definitions have the format json only", DATA)


@verb(
    '<file_path | "-"> [--format <json | erlang>] [--skip-if-unchanged] [--timeout <timeout>]',
    arguments=(0, 1),
    tools=CTL,
    banner=lambda call: (
        "Importing definitions in JSON from standard input ..."
        if not call.arguments or call.arguments[0] == _STANDARD
        else f'Importing definitions in JSON from a file at "{call.arguments[0]}" ...'
    ),
)
def import_definitions(call: Call) -> str:
    """Read definitions in JSON from a file or standard input; all or none is taken."""
    _only_json(call)
    file = call.arguments[0] if call.arguments else _STANDARD
    if file != _STANDARD and not Path(file).is_file():
        raise WrongArguments(f"Bad argument: File {file} does not exist", DATA)
    try:
        text = sys.stdin.read() if file == _STANDARD else Path(file).read_text(encoding="utf-8")
        document = json.loads(text)
    except (ValueError, OSError) as error:
        raise VerbFailed(f"Failed to parse the definitions: {error}", DATA) from None
    if not isinstance(document, dict):
        raise VerbFailed("Failed to parse the definitions: they are not a JSON object", DATA)
    answer = call.ask("definitions.import", definitions=document, patience=_IMPORT_SECONDS)
    return f"Definitions were imported: {answer['imported']}"
