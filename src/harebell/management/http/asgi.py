"""The words of ASGI that the HTTP API uses: what a server and an application tell each other.

A request is a `Scope`, its head. `Receive` returns the next message of the client, a part of the
body or that it has gone; `Send` takes the parts of the answer. These few lines are all that the
HTTP API needs of an ASGI framework, whose import would cost each start of a broker more than the
whole HTTP API.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class ClientDisconnect(Exception):
    """The client has closed its connection before it had its answer."""
