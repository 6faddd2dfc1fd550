"""Errors of the HTTP API, with the status and the body of RabbitMQ's."""

from __future__ import annotations

from typing import Any

from harebell.admin.context import CheckFailed, Unavailable, WrongArgument
from harebell.base.errors import ErrorKind, HarebellError, shortened
from harebell.management.control.client import WRONG_ARGUMENT
from harebell.management.json_rows import encode
from harebell.management.limits import HTTP_RETRY_SECONDS

UNAUTHORISED = 401
REALM = 'Basic realm="RabbitMQ Management"'


class HttpError(HarebellError):
    """A request is refused.

    Args:
        status: the status code.
        error: a short name of the error.
        reason: a sentence for the user.
        headers: more headers of the response.
        answer: the body, if it is another one.
    """

    def __init__(
        self,
        status: int,
        error: str,
        reason: str,
        headers: tuple[tuple[str, str], ...] = (),
        answer: dict[str, Any] | None = None,
    ) -> None:
        reason = shortened(reason)
        super().__init__(reason)
        self.status = status
        self.error = error
        self.reason = reason
        self.headers = headers
        self._answer = answer

    @property
    def body(self) -> bytes:
        """Return the body of the response."""
        return encode(self._answer or {"error": self.error, "reason": self.reason})


def not_found(reason: str = "Not Found") -> HttpError:
    """Return the error for what does not exist."""
    return HttpError(404, "Object Not Found", reason)


def bad_request(reason: str) -> HttpError:
    """Return the error for a request that is wrong."""
    return HttpError(400, "bad_request", reason)


def wrong_argument(reason: str) -> HttpError:
    """Return the error for a value that no broker would take."""
    return HttpError(400, WRONG_ARGUMENT, reason)


def not_authorised(reason: str) -> HttpError:
    """Return the error for a user without the rights; RabbitMQ answers 401 to them."""
    return HttpError(UNAUTHORISED, "not_authorised", reason)


def not_authenticated(reason: str) -> HttpError:
    """Return the error for a request without a valid login."""
    return HttpError(401, "not_authorized", reason, (("www-authenticate", REALM),))


def too_large(limit: int) -> HttpError:
    """Return the error for a body above a limit in bytes."""
    return HttpError(
        413,
        "payload_too_large",
        f"the body has more than {limit} bytes: send less; management_body_max_bytes is for "
        "messages and definitions",
    )


def too_many_connections(user: str) -> HttpError:
    """Return the error for a user who has a share of all connections."""
    return HttpError(
        503,
        "too_many_connections",
        f"user '{user}' has half of all connections for HTTP, and each runs a request: wait for "
        "their answers, or raise management_connection_max",
        (("retry-after", str(HTTP_RETRY_SECONDS)),),
    )


def not_allowed(method: str, allowed: list[str]) -> HttpError:
    """Return the error for a method that a path does not have."""
    methods = ", ".join(allowed)
    return HttpError(
        405,
        "Method Not Allowed",
        f"this path has no {method}: it has {methods}",
        (("allow", methods),),
    )


def of_refusal(refusal: HarebellError, *, reads: bool = False) -> HttpError:
    """Return the error for a command that was refused.

    Args:
        refusal: its error.
        reads: whether the request reads or deletes: RabbitMQ has another word for these.
    """
    if isinstance(refusal, CheckFailed):
        return HttpError(503, "check_failed", str(refusal), answer=refusal.answer)
    if isinstance(refusal, Unavailable):
        later = (("retry-after", str(HTTP_RETRY_SECONDS)),)
        return HttpError(503, "service_unavailable", str(refusal), later)
    if isinstance(refusal, WrongArgument):
        return wrong_argument(str(refusal))
    kind = getattr(refusal, "kind", ErrorKind.PRECONDITION_FAILED)
    if kind is ErrorKind.NOT_FOUND:
        return not_found(str(refusal)) if reads else HttpError(404, "not_found", str(refusal))
    if kind is ErrorKind.ACCESS_REFUSED:
        return not_authorised(str(refusal))
    return bad_request(str(refusal))
