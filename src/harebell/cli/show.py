"""Print a message as its body, its raw body, or a line of JSON."""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

from harebell.base.printable import printable
from harebell.cli.formats import JSON, takes_format
from harebell.client.message import PROPERTY_NAMES, Delivered
from harebell.wire.json_values import shown as shown_value

BODY = "body"
RAW = "raw"
output_flag = takes_format(
    BODY,
    RAW,
    help_text="body: a body per line, on a terminal with escapes for what does not print; raw: "
    "only the bytes of the bodies, with nothing between them.",
    json_help="Print a line of JSON per message.",
)
"""Decorates a verb with `-o` and `--json`."""


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
        name: shown_value(getattr(message.properties, name), iso=True)
        for name in sorted(PROPERTY_NAMES - {"headers"})
        if getattr(message.properties, name) is not None
    }
    shown["properties"] = properties
    shown["headers"] = shown_value(message.headers, iso=True)
    try:
        shown["body"] = message.body.decode()
    except UnicodeDecodeError:
        shown["body_base64"] = base64.b64encode(message.body).decode()
    return shown
