"""The options of `connect` in both APIs, and the arguments of a connection that they give."""

from __future__ import annotations

import random
import ssl
from typing import Any

from harebell.client.protocol.recovery import Recovery, recovery_of
from harebell.client.protocol.v09.core import Random
from harebell.client.url import URL

Options = tuple[URL, Recovery | None, Random, dict[str, Any], ssl.SSLContext | None, float | None]


def options(
    url: str | URL,
    version: str | None,
    recover: bool | Recovery,
    rng: Random | None,
    properties: dict[str, Any] | None,
    ssl_context: ssl.SSLContext | None,
    wait: float | None,
) -> Options:
    """Return the arguments of a connection for those of `connect`.

    Raises:
        URLError: the address is invalid.
        ValueError: `wait` is below 0.
    """
    if wait is not None and not wait >= 0:
        raise ValueError(f"wait is a number of seconds, not {wait!r}")
    entropy = rng if rng is not None else random.Random()  # noqa: S311 - jitter, no secret
    address = URL.of(url, version)
    return address, recovery_of(recover), entropy, dict(properties or {}), ssl_context, wait
