"""Reply codes: their names, and whether they close the channel (soft) or the connection (hard)."""

from __future__ import annotations

from collections.abc import Mapping

from harebell.wire.limits import REPLY_TEXT_BYTES

REPLY_SUCCESS = 200

SOFT = {
    311: "CONTENT_TOO_LARGE",
    312: "NO_ROUTE",
    313: "NO_CONSUMERS",
    403: "ACCESS_REFUSED",
    404: "NOT_FOUND",
    405: "RESOURCE_LOCKED",
    406: "PRECONDITION_FAILED",
}
HARD = {
    320: "CONNECTION_FORCED",
    402: "INVALID_PATH",
    501: "FRAME_ERROR",
    502: "SYNTAX_ERROR",
    503: "COMMAND_INVALID",
    504: "CHANNEL_ERROR",
    505: "UNEXPECTED_FRAME",
    506: "RESOURCE_ERROR",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
    541: "INTERNAL_ERROR",
}
OWN = {
    409: "GENERATION_CHANGED",
    410: "RANGE_GONE",
    411: "RECORD_DAMAGED",
    412: "FENCED",
    413: "LEASE_LOST",
}
"""Soft codes of Harebell's extension classes; other clients never get them."""

NAMES = SOFT | OWN | HARD

_CUT = "..."


def reply_text(code: int, text: str, names: Mapping[int, str] = NAMES) -> str:
    """Return `NAME - text`, cut between characters to fit a shortstr; dots show the cut.

    Raises:
        ValueError: the version has no such reply code.
    """
    name = names.get(code)
    if name is None:
        raise ValueError(f"{code} is no reply code; they are {', '.join(map(str, names))}")
    # A text may quote octets of a peer that are no UTF-8.
    octets = f"{name} - {text}".encode(errors="replace")
    if len(octets) <= REPLY_TEXT_BYTES:
        return octets.decode()
    return octets[: REPLY_TEXT_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


SOFT_0_10T = {310: "NOT_DELIVERED", **SOFT}
"""Codes of transitional 0-10 that close the channel or the session."""

HARD_0_10T = {code: name for code, name in HARD.items() if code != 505} | {542: "INVALID_ARGUMENT"}
"""Codes of transitional 0-10 that close the connection."""

NAMES_0_10T = SOFT_0_10T | HARD_0_10T
