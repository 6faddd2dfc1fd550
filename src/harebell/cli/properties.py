"""Message properties on the command line: one flag each, and `-H name=value` for headers.

`-H kind=invoice` is text. `-H retries:=3` is the JSON value 3, so that numbers, booleans, lists and
tables can be written too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import click

PERSISTENT = 2
TRANSIENT = 1
_PRIORITY_MAX = 255

_TEXTS = {
    "content_type": "MIME type of the body, such as application/json.",
    "content_encoding": "Encoding of the body, such as gzip.",
    "correlation_id": "What this message answers or belongs to.",
    "reply_to": "Queue that answers should go to.",
    "expiration": "Milliseconds after which the message may be dropped.",
    "message_id": "Identifier of the message.",
    "type": "Name of the message's kind.",
    "user_id": "User who sends; the broker checks it.",
    "app_id": "Application that sends.",
}


def _instant(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    """Parse `now`, ISO 8601 or a number into seconds since 1970."""
    if value is None:
        return None
    if value == "now":
        return int(datetime.now(UTC).timestamp())
    if re.fullmatch(r"\d{1,18}", value):
        return int(value)
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no time: use now, 2026-01-31T12:00:00+00:00 or seconds since 1970"
        ) from None
    return int((instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp())


def property_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a verb with one flag per property."""
    options = [
        *(
            click.option("--" + name.replace("_", "-"), name, metavar="TEXT", help=text)
            for name, text in _TEXTS.items()
        ),
        click.option(
            "--priority",
            type=click.IntRange(0, _PRIORITY_MAX),
            metavar="NUMBER",
            help="0 to 255, for priority queues.",
        ),
        click.option(
            "--timestamp", callback=_instant, metavar="TIME", help="now, ISO 8601 or seconds."
        ),
        click.option(
            "--persistent/--transient",
            default=True,
            help="Whether the message has to survive a restart.  [default: persistent]",
        ),
        click.option(
            "-H",
            "--header",
            "headers",
            multiple=True,
            metavar="NAME=VALUE",
            help="A header: name=text or name:=JSON. May be repeated.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def properties_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of the client for the given flags."""
    properties = {
        name: given[name] for name in (*_TEXTS, "priority", "timestamp") if given[name] is not None
    }
    properties["delivery_mode"] = PERSISTENT if given["persistent"] else TRANSIENT
    headers = headers_of(given["headers"])
    if headers:
        properties["headers"] = headers
    return properties


def headers_of(pairs: Sequence[str], what: str = "header") -> dict[str, Any]:
    """Return the table of `-H` or `-a` flags; the last of equal names wins.

    Raises:
        click.BadParameter: a text is not a pair, or a value is not valid JSON.
    """
    headers: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.rstrip(":"):
            raise click.BadParameter(f"{pair!r} is no {what}: write name=text or name:=JSON")
        if not name.endswith(":"):
            headers[name] = value
            continue
        try:
            headers[name[:-1]] = json.loads(value)
        except ValueError:
            raise click.BadParameter(
                f"{pair!r}: {value!r} is not JSON; write {name[:-1]}={value} for text"
            ) from None
    return headers
