"""Print a message as its body, its raw body, or a line of JSON."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any

import click

from harebell.base.printable import printable
from harebell.client.message import PROPERTY_NAMES, Delivered

BODY = "body"
JSON = "json"
RAW = "raw"


def output_flag(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a verb with `--output`."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice((BODY, JSON, RAW)),
        default=BODY,
        help="body: a body per line, on a terminal with escapes for what does not print; json: "
        "a line of JSON per message; raw: only the bytes of "
        "the bodies, with nothing between them.  [default: body]",
    )(command)


def show(message: Delivered, output: str) -> None:
    """Write and flush a message, so that it is visible before it is acknowledged."""
    out = sys.stdout.buffer
    if output == JSON:
        line = printable(json.dumps(as_json(message), ensure_ascii=False))
        out.write(line.encode() + b"\n")
    else:
        out.write(_for_people(message.body) if output == BODY else message.body)
        if output == BODY:
            out.write(b"\n")
    out.flush()


def _for_people(body: bytes) -> bytes:
    """Return a body; control characters are escaped if the output is a terminal."""
    if not sys.stdout.isatty():
        return body
    return printable(body.decode(errors="backslashreplace"), "\n\t").encode()


def as_json(message: Delivered) -> dict[str, Any]:
    """Return a message as an object; a body that is not UTF-8 is in `body_base64`."""
    shown: dict[str, Any] = {
        "exchange": message.exchange,
        "routing_key": message.routing_key,
        "redelivered": message.redelivered,
    }
    properties = {
        name: _plain(getattr(message.properties, name))
        for name in sorted(PROPERTY_NAMES - {"headers"})
        if getattr(message.properties, name) is not None
    }
    shown["properties"] = properties
    shown["headers"] = _plain(message.headers)
    try:
        shown["body"] = message.body.decode()
    except UnicodeDecodeError:
        shown["body_base64"] = base64.b64encode(message.body).decode()
    return shown


def _plain(value: Any) -> Any:
    """Convert a property or header value for JSON."""
    if isinstance(value, dict):
        return {str(name): _plain(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes | bytearray):
        return {"base64": base64.b64encode(value).decode()}
    return value
