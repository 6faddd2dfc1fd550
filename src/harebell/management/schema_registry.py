"""Schemas of a registry that has the API of Confluent's, for messages that name them by an id.

The broker asks the registry of `management_schema_registry` for `schemas/ids/{id}`. A user chooses
the id, which is a number, and nothing else of the request. What the registry answers is believed as
little as what a client sends: its size, its time and its form are checked.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from harebell.admin.context import CommandRefused
from harebell.admin.limits import (
    SCHEMA_BYTES,
    SCHEMA_REQUESTS,
    SCHEMA_USER_REQUESTS,
    SCHEMAS_KEPT,
)
from harebell.management.backends.web_client import WebClient, WebError
from harebell.management.limits import SCHEMA_SECONDS

_OK = 200
_TYPES = ("AVRO", "PROTOBUF", "JSON")


class _Answer(msgspec.Struct, rename="camel"):
    schema: str
    schema_type: str = "AVRO"


class SchemaRegistry:
    """Reads schemas, and keeps the last ones: that of an id never changes.

    Args:
        loop: the event loop.
        url: returns the address of the registry; None for none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, url: Callable[[], str | None]) -> None:
        self._loop = loop
        self._url = url
        self._kept: OrderedDict[tuple[str, int], dict[str, Any]] = OrderedDict()
        self._asking: dict[asyncio.Task[None], str] = {}

    def ask(self, user: str, number: int) -> Future[dict[str, Any]]:
        """Begin to read the schema with an id; return a row with it, or with what is wrong.

        Raises:
            CommandRefused: too many are being read.
        """
        answer: Future[dict[str, Any]] = Future()
        url = self._url()
        kept = None if url is None else self._kept.get((url, number))
        if url is None or kept is not None:
            answer.set_result(kept or _row(number))
            return answer
        users = Counter(self._asking.values())
        if users[user] >= SCHEMA_USER_REQUESTS or users.total() >= SCHEMA_REQUESTS:
            whose = "one user" if users[user] >= SCHEMA_USER_REQUESTS else "all users"
            raise CommandRefused(
                f"as many schemas are being read as {whose} may have: ask again in a moment"
            )
        task = self._loop.create_task(self._answer(url, number, answer))
        self._asking[task] = user
        task.add_done_callback(self._asking.pop)
        return answer

    async def stop(self) -> None:
        """End all requests."""
        tasks = list(self._asking)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, url: str, number: int, answer: Future[dict[str, Any]]) -> None:
        try:
            row = self._kept[url, number] = await _read(url, number)
        except WebError as error:
            row = _row(number, problem=f"the schema registry: {error}")
        except asyncio.CancelledError:
            row = _row(number, problem="the broker is stopping")
        if len(self._kept) > SCHEMAS_KEPT:
            self._kept.popitem(last=False)
        if not answer.cancelled():
            answer.set_result(row)


async def _read(url: str, number: int) -> dict[str, Any]:
    # In a thread, because it reads the certificates of the system.
    client = await asyncio.to_thread(WebClient, SCHEMA_SECONDS, SCHEMA_SECONDS)
    try:
        where = f"{url.rstrip('/')}/schemas/ids/{number}"
        status, body = await client.get(where, _login(url))
    finally:
        # Its thread may still wait for a registry that is slow.
        client.close()
    if status != _OK:
        raise WebError(f"it answered {status} for schema {number}")
    if len(body.encode()) > SCHEMA_BYTES:
        raise WebError(f"schema {number} has more than {SCHEMA_BYTES} bytes")
    try:
        found = msgspec.json.decode(body, type=_Answer)
    except (ValueError, RecursionError):
        raise WebError(f"its answer for schema {number} is none of a schema registry") from None
    if found.schema_type not in _TYPES:
        raise WebError(f"schema {number} is of a type that is not {', '.join(_TYPES)}")
    return _row(number, type=found.schema_type, schema=found.schema)


def _login(url: str) -> dict[str, str]:
    """Return the headers for the user and password that an address names; none without them."""
    parts = urlsplit(url)
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _row(number: int, **more: str) -> dict[str, Any]:
    return {"id": number, "type": None, "schema": None, "problem": None, **more}
