"""The reply codes of transitional 0-10 and their names on the wire."""

from __future__ import annotations

SOFT = {
    310: "NOT_DELIVERED",
    311: "CONTENT_TOO_LARGE",
    312: "NO_ROUTE",
    313: "NO_CONSUMERS",
    403: "ACCESS_REFUSED",
    404: "NOT_FOUND",
    405: "RESOURCE_LOCKED",
    406: "PRECONDITION_FAILED",
}
"""Codes of errors that close the channel or the session."""

HARD = {
    320: "CONNECTION_FORCED",
    402: "INVALID_PATH",
    501: "FRAME_ERROR",
    502: "SYNTAX_ERROR",
    503: "COMMAND_INVALID",
    504: "CHANNEL_ERROR",
    506: "RESOURCE_ERROR",
    530: "NOT_ALLOWED",
    540: "NOT_IMPLEMENTED",
    541: "INTERNAL_ERROR",
    542: "INVALID_ARGUMENT",
}
"""Codes of errors that close the connection."""

NAMES = SOFT | HARD
