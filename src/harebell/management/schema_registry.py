"""Schemas of a registry that has the API of Confluent's, for messages that name them by an id.

The broker asks the registry of `management_schema_registry` for `schemas/ids/{id}`, and for
`subjects/{subject}/versions/{version}` of each schema that this one refers to. A user chooses the
id, which is a number, and nothing else of the requests. What the registry answers is believed as
little as what a client sends: its size, its time and its form are checked.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections import Counter, OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

from harebell.admin.context import CommandRefused
from harebell.admin.limits import (
    SCHEMA_BYTES,
    SCHEMA_REFERENCE_DEPTH,
    SCHEMA_REFERENCES,
    SCHEMA_REQUESTS,
    SCHEMA_USER_REQUESTS,
    SCHEMAS_KEPT,
)
from harebell.management.backends.web_client import WebClient, WebError
from harebell.management.limits import SCHEMA_SECONDS

_OK = 200
_SHOWN = 200
_TYPES = ("AVRO", "PROTOBUF", "JSON")
_NO_SUBJECTS = ("", ".", "..")
"""Names that would be another path."""


class _Reference(msgspec.Struct, frozen=True):
    name: str
    subject: str
    version: int

    def __str__(self) -> str:
        name, subject = self.name[:_SHOWN], self.subject[:_SHOWN]
        return f"'{name}' (version {self.version} of subject '{subject}')"


class _Answer(msgspec.Struct, rename="camel"):
    schema: str
    schema_type: str = "AVRO"
    references: list[_Reference] | None = None


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
    reading = _Reading(client, url)
    try:
        # As long as one request may take.
        async with asyncio.timeout(3 * SCHEMA_SECONDS):
            found = await reading.get(f"schemas/ids/{number}", f"schema {number}")
            if found.schema_type not in _TYPES:
                raise WebError(f"schema {number} is of a type that is not {', '.join(_TYPES)}")
            await reading.resolve(found, f"schema {number}", SCHEMA_REFERENCE_DEPTH)
    except TimeoutError:
        raise WebError("timeout") from None
    finally:
        # Its thread may still wait for a registry that is slow.
        client.close()
    return _row(number, type=found.schema_type, schema=found.schema, references=reading.references)


class _Reading:
    """Reads a schema, and those that it refers to.

    Args:
        client: sends the requests.
        url: the address of the registry.

    Attributes:
        references: what was referred to, by the names that stand for it.
    """

    def __init__(self, client: WebClient, url: str) -> None:
        self._client = client
        self._url = url
        self._known: set[tuple[str, int]] = set()
        self._left = SCHEMA_BYTES
        self.references: list[dict[str, str]] = []

    async def get(self, path: str, what: str) -> _Answer:
        """Read one schema."""
        where = f"{self._url.rstrip('/')}/{path}"
        status, body = await self._client.get(where, _login(self._url))
        if status != _OK:
            raise WebError(f"it answered {status} for {what}")
        self._left -= len(body.encode())
        if self._left < 0:
            with_others = ", with those before it," if self._known else ""
            raise WebError(f"{what}{with_others} has more than {SCHEMA_BYTES} bytes")
        try:
            return msgspec.json.decode(body, type=_Answer)
        except (ValueError, RecursionError):
            raise WebError(f"its answer for {what} is none of a schema registry") from None

    async def resolve(self, found: _Answer, what: str, levels: int) -> None:
        """Read what a schema refers to, and what that refers to."""
        for each in found.references or ():
            key = (each.subject, each.version)
            if key in self._known:
                continue
            needed = f"{each}, which {what} refers to"
            if not levels:
                raise WebError(f"{needed} is behind {SCHEMA_REFERENCE_DEPTH} other references")
            if len(self._known) >= SCHEMA_REFERENCES:
                raise WebError(f"{needed} is beyond {SCHEMA_REFERENCES} references")
            if each.subject in _NO_SUBJECTS:
                raise WebError(f"its answer for {what} is none of a schema registry")
            self._known.add(key)
            path = f"subjects/{quote(each.subject, safe='')}/versions/{each.version}"
            referred = await self.get(path, needed)
            self.references.append({"name": each.name, "schema": referred.schema})
            await self.resolve(referred, str(each), levels - 1)


def _login(url: str) -> dict[str, str]:
    """Return the headers for the user and password that an address names; none without them."""
    parts = urlsplit(url)
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}


def _row(number: int, **more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"type": None, "schema": None, "references": [], "problem": None}
    return {"id": number, **empty, **more}
