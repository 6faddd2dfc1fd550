"""The subcommands of rabbitmqadmin."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harebell_rabbitmq_compat.exits import OK
from harebell_rabbitmq_compat.management.client import Api, RequestFailed
from harebell_rabbitmq_compat.management.formats import FORMATS, table_of
from harebell_rabbitmq_compat.management.objects import (
    CLOSED,
    DECLARED,
    DELETED,
    GET,
    LISTS,
    PUBLISH,
    PURGED,
    REPORTS,
    Listed,
    Thing,
)
from harebell_rabbitmq_compat.management.settings import SettingsError, parser, settings_of

_FAILED = 1
_INTERRUPTED = 130


class _WrongUsage(Exception):
    """The subcommand or its arguments are wrong."""


def main(words: Sequence[str]) -> int:
    """Run rabbitmqadmin.

    Args:
        words: the command line.

    Returns:
        the exit code.
    """
    try:
        settings = settings_of(words)
        _run(settings)
    except (SettingsError, _WrongUsage) as error:
        print(f"\nERROR: {error}\n\nrabbitmqadmin --help for help\n", file=sys.stderr)
        return _FAILED
    except RequestFailed as error:
        print(f"*** {error}\n", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    return OK


def _run(settings: argparse.Namespace) -> None:
    if getattr(settings, "version", False):
        from harebell.front.common.settings import COMPATIBLE_VERSION

        print(f"rabbitmqadmin {COMPATIBLE_VERSION}")
        return
    if getattr(settings, "bash_completion", False):
        print(_completion())
        return
    if not settings.words:
        raise _WrongUsage("Action not specified")
    name, *arguments = settings.words
    if name not in _ACTIONS:
        raise _WrongUsage(f"Action {name} not understood")
    _ACTIONS[name](settings, Api(settings), arguments)


def _say(settings: argparse.Namespace, text: str) -> None:
    if settings.verbose:
        print(text)


# --- lists ----------------------------------------------------------------------------------------


def _list(settings: argparse.Namespace, api: Api, arguments: list[str]) -> None:
    listed, path, columns = _listed(settings, arguments, LISTS, "list")
    _show(settings, api.send("GET", path), columns, listed.as_json)


def _show_report(settings: argparse.Namespace, api: Api, arguments: list[str]) -> None:
    listed, path, columns = _listed(settings, arguments, REPORTS, "show")
    _show(settings, f"[{api.send('GET', path)}]", columns, listed.as_json)


def _listed(
    settings: argparse.Namespace, arguments: list[str], known: dict[str, Listed], verb: str
) -> tuple[Listed, str, list[str]]:
    """Return what is listed, its path with the query, and its columns."""
    if not arguments:
        raise _WrongUsage("Type not specified")
    name, *columns = arguments
    if name not in known:
        raise _WrongUsage(f"Don't know how to {verb} {name}")
    listed = known[name]
    path = "/" + name.replace("_", "-")
    if listed.of_vhost and settings.vhost:
        path += "/" + quote(settings.vhost, safe="")
    if not columns and settings.depth == "1" and "json" not in settings.format:
        columns = list(listed.columns)
    query = []
    if columns:
        query.append("columns=" + quote(",".join(columns), safe=",."))
    if settings.sort:
        query.append("sort=" + quote(settings.sort, safe="."))
    if getattr(settings, "sort_reverse", False):
        query.append("sort_reverse=true")
    return listed, path + ("?" + "&".join(query) if query else ""), columns


def _show(
    settings: argparse.Namespace, text: str, columns: Sequence[str], as_json: Sequence[str]
) -> None:
    """Print the answer to a list in the format of `-f`."""
    chosen = FORMATS[settings.format]
    if chosen is None:
        if settings.format == "pretty_json":
            text = json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True, indent=2)
        print(text)
        return
    names, table = table_of(json.loads(text), columns, int(settings.depth), as_json)
    if not table:
        _say(settings, "No items")
        return
    for line in chosen(names, table, verbose=settings.verbose):
        print(line)


# --- objects --------------------------------------------------------------------------------------


def _parsed(
    settings: argparse.Namespace, thing: Thing, arguments: list[str]
) -> tuple[str, dict[str, Any]]:
    """Return the path and the fields for arguments such as `name=jobs`."""
    fields: dict[str, Any] = {
        name: value for name, value in thing.defaults.items() if value is not None
    }
    names = {name for each in thing.needed for name in _alternatives(each)}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals:
            raise _WrongUsage(f'Argument "{argument}" not in the name=value format')
        if name not in names and name not in thing.defaults:
            raise _WrongUsage(f'Argument "{name}" is not recognised')
        fields[name] = _json(value) if name in thing.as_json else value
    for each in thing.needed:
        if not any(name in fields for name in _alternatives(each)):
            raise _WrongUsage(
                f'mandatory argument "{each}" is required'
                if isinstance(each, str)
                else f'one of mandatory arguments "{list(each)}" is required'
            )
    if "vhost" not in names:
        fields["vhost"] = settings.vhost or settings.declare_vhost
    parts = {name: quote(str(value), safe="") for name, value in fields.items()}
    if "destination_type" in fields:
        parts["destination_char"] = str(fields["destination_type"])[:1]
    return "/" + thing.path.format_map(parts), fields


def _alternatives(needed: str | tuple[str, ...]) -> tuple[str, ...]:
    return (needed,) if isinstance(needed, str) else needed


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        print(f"ERROR: Could not parse JSON:\n  {text}", file=sys.stderr)
        sys.exit(_FAILED)


def _kind(known: dict[str, Thing], arguments: list[str]) -> tuple[str, Thing]:
    if not arguments:
        raise _WrongUsage("Type not specified")
    if arguments[0] not in known:
        raise _WrongUsage(f"Type {arguments[0]} not recognised")
    return arguments[0], known[arguments[0]]


def _declare(settings: argparse.Namespace, api: Api, arguments: list[str]) -> None:
    name, thing = _kind(DECLARED, arguments)
    path, fields = _parsed(settings, thing, arguments[1:])
    if "queue_type" in fields:
        fields["arguments"] = {**fields["arguments"], "x-queue-type": fields["queue_type"]}
    api.send("POST" if name == "binding" else "PUT", path, json.dumps(fields))
    _say(settings, f"{name} declared")


def _remover(
    known: dict[str, Thing], done: str
) -> Callable[[argparse.Namespace, Api, list[str]], None]:
    def remove(settings: argparse.Namespace, api: Api, arguments: list[str]) -> None:
        name, thing = _kind(known, arguments)
        path, _ = _parsed(settings, thing, arguments[1:])
        api.send("DELETE", path)
        _say(settings, f"{name} {done}")

    return remove


# --- messages -------------------------------------------------------------------------------------


def _publish(settings: argparse.Namespace, api: Api, arguments: list[str]) -> None:
    path, fields = _parsed(settings, PUBLISH, arguments)
    if "payload" not in fields:
        fields["payload"] = base64.b64encode(sys.stdin.buffer.read()).decode()
        fields["payload_encoding"] = "base64"
    routed = json.loads(api.send("POST", path, json.dumps(fields)))["routed"]
    _say(settings, "Message published" if routed else "Message published but NOT routed")


def _get(settings: argparse.Namespace, api: Api, arguments: list[str]) -> None:
    path, fields = _parsed(settings, GET, arguments)
    file = fields.pop("payload_file", None)
    if file and fields["count"] != "1":
        raise _WrongUsage("Cannot get multiple messages using payload_file")
    text = api.send("POST", path, json.dumps(fields))
    if not file:
        _show(settings, text, (), ())
        return
    messages = json.loads(text)
    if messages:
        body = messages[0]["payload"]
        encoded = messages[0]["payload_encoding"] == "base64"
        Path(file).write_bytes(base64.b64decode(body) if encoded else body.encode())
    columns = ("routing_key", "exchange", "message_count", "payload_bytes", "redelivered")
    _show(settings, text, columns, ())


# --- definitions ----------------------------------------------------------------------------------


def _definitions(settings: argparse.Namespace, arguments: list[str]) -> tuple[str, str]:
    if len(arguments) != 1:
        raise _WrongUsage("Exactly one argument required")
    vhost = "/" + quote(settings.vhost, safe="") if settings.vhost else ""
    return arguments[0], f"/definitions{vhost}"


def _export(settings: argparse.Namespace, api: Api, arguments: list[str]) -> None:
    import os

    file, path = _definitions(settings, arguments)
    text = api.send("GET", path)
    try:
        # The file has hashes of passwords: only its owner may read it.
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise RequestFailed(f"Could not write '{file}': {error.strerror}") from None
    _say(settings, f'Exported definitions for {settings.hostname} to "{file}"')


def _import(settings: argparse.Namespace, api: Api, arguments: list[str]) -> None:
    file, path = _definitions(settings, arguments)
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RequestFailed(f"Could not read '{file}': {error}") from None
    api.send("POST", path, text)
    _say(settings, f'Uploaded definitions from "{file}" to {settings.hostname}.')


# --- help -----------------------------------------------------------------------------------------


def _stanza(verb: str, known: dict[str, Thing]) -> list[str]:
    lines = []
    for name, thing in known.items():
        needed = " ".join("=... OR ".join(_alternatives(each)) + "=..." for each in thing.needed)
        optional = " ".join(f"{each}=..." for each in thing.defaults)
        lines.append(f"  {verb} {name} {needed}" + (f" [{optional}]" if optional else ""))
    return lines


def _subcommands() -> str:
    lines = [
        *(f"  list {name} [<column>...]" for name in LISTS),
        *(f"  show {name} [<column>...]" for name in REPORTS),
        *_stanza("declare", DECLARED),
        *_stanza("delete", DELETED),
        *_stanza("close", CLOSED),
        *_stanza("purge", PURGED),
        "  export <file>",
        "  import <file>",
        *_stanza("publish", {"": PUBLISH}),
        *_stanza("get", {"": GET}),
    ]
    return "\n".join(
        [
            "Usage\n=====\n  rabbitmqadmin [options] subcommand\n\n  where subcommand is one of:\n",
            *(" ".join(["", *line.split()]).replace(" ", "  ", 1) for line in lines),
            "\n  publish without payload reads standard input; get with payload_file writes the\n"
            "  body of one message to a file",
        ]
    )


_CONFIG_HELP = """Configuration file
==================

A section per broker, chosen with -N; flags override it:

  [here]
  hostname = localhost
  port = 15672
  username = guest
  password = guest
  vhost = /

  [there]
  hostname = broker.example
  port = 15671
  ssl = True
  ssl_ca_cert_file = /path/to/ca.pem

  rabbitmqadmin -c FILE -N there list queues"""


def _help(settings: argparse.Namespace, api: Api, arguments: list[str]) -> None:
    if not arguments:
        parser().print_help()
        return
    topics: dict[str, Callable[[], str]] = {
        "subcommands": _subcommands,
        "config": lambda: _CONFIG_HELP,
    }
    if arguments[0] not in topics:
        raise _WrongUsage(f"help topic must be one of: {', '.join(topics)}")
    print(topics[arguments[0]]())


def _completion() -> str:
    """Return a completion script for bash: subcommands, and what they take."""
    kinds: dict[str, Iterable[str]] = {
        "list": LISTS,
        "show": REPORTS,
        "declare": DECLARED,
        "delete": DELETED,
        "close": CLOSED,
        "purge": PURGED,
    }
    cases = "\n".join(f'    {verb}) words="{" ".join(known)}" ;;' for verb, known in kinds.items())
    return (
        "_rabbitmqadmin() {\n"
        '  local current="${COMP_WORDS[COMP_CWORD]}" words\n'
        '  case "${COMP_WORDS[COMP_CWORD-1]}" in\n'
        f"{cases}\n"
        f'    *) words="{" ".join(_ACTIONS)}" ;;\n'
        "  esac\n"
        '  COMPREPLY=($(compgen -W "$words" -- "$current"))\n'
        "}\n"
        "complete -F _rabbitmqadmin rabbitmqadmin"
    )


_ACTIONS: dict[str, Callable[[argparse.Namespace, Api, list[str]], None]] = {
    "list": _list,
    "show": _show_report,
    "declare": _declare,
    "delete": _remover(DELETED, "deleted"),
    "close": _remover(CLOSED, "closed"),
    "purge": _remover(PURGED, "purged"),
    "publish": _publish,
    "get": _get,
    "export": _export,
    "import": _import,
    "help": _help,
}
