"""What the HTTP API answers without a login: texts, redirects, and the login of a web page."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl

from harebell.base.version import VERSION
from harebell.server.http.errors import HttpError, bad_request, not_allowed
from harebell.server.json_rows import encode

if TYPE_CHECKING:
    from harebell.server.http.login import Logins

OPENAPI = ["api", "openapi.json"]
"""The path of the OpenAPI document."""
LOGIN = ["api", "login"]
"""The path where a form with `username` and `password` is sent to."""
_READS = ("GET", "HEAD", "OPTIONS")
_JSON = ("content-type", "application/json")
_TEXT = ("content-type", "text/plain; charset=utf-8")
_ADMIN_TEXT = """\
Harebell has RabbitMQ's command rabbitmqadmin as a Python package:

    pip install harebell-rabbitmq-compat
    rabbitmqadmin --host HOST --port PORT --username USER --password PASSWORD list queues

The script that RabbitMQ serves at /cli/rabbitmqadmin is a part of RabbitMQ. It is not served here,
and it works with this broker: use a copy of a RabbitMQ installation, or the package above.
"""


class Open(NamedTuple):
    """An answer that needs no login.

    Args:
        status: the status code.
        headers: names and values, as they are sent.
        body: what follows the headers.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""


_ADMIN = Open(200, (_TEXT,), _ADMIN_TEXT.encode())
_PATHS: dict[tuple[str, ...], Open] = {
    ("api",): Open(301, (("location", "/api/openapi.json"),)),
    ("api", "version"): Open(200, (_JSON,), encode(VERSION)),
    ("cli",): _ADMIN,
    ("cli", "index.html"): _ADMIN,
    # 404, so that a script which downloads the file does not run this text.
    ("cli", "rabbitmqadmin"): _ADMIN._replace(status=404),
}


def open_answer(method: str, segments: list[str], prefix: str) -> Open | None:
    """Return the answer of a path that needs no login; None for all other paths.

    Args:
        method: the HTTP method.
        segments: the path.
        prefix: the start of all paths; "" for none.

    Raises:
        HttpError: 405.
    """
    found = _PATHS.get(tuple(segments))
    if found is None:
        return None
    if method not in _READS:
        raise not_allowed(method, ["GET", "HEAD", "OPTIONS"])
    if found.status == 301:
        (name, where), *_ = found.headers
        return found._replace(headers=((name, prefix + where),))
    return found


async def logged_in(body: bytes, logins: Logins, address: str, *, tls: bool) -> Open:
    """Answer a form with a user and a password.

    The cookie `auth` is for the web page, which sends its value in the header `authorization`. As
    on RabbitMQ, the cookie alone does not authenticate.

    Args:
        body: the form.
        logins: authenticates requests.
        address: of the client.
        tls: whether the request came over TLS.

    Raises:
        HttpError: 400, it is no form; 401, the login is wrong.
    """
    try:
        form = dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict"))
    except ValueError as error:
        raise bad_request(f"the form cannot be read: {error}") from None
    name = form.get("username", "")
    credentials = b64encode(f"{name}:{form.get('password', '')}".encode()).decode()
    if ":" in name:
        raise HttpError(400, "bad_request", "a user whose name has ':' cannot log in over HTTP")
    await logins.user_of(f"Basic {credentials}", address)
    cookie = f"auth={credentials}; Version=1; Path=/; SameSite=Strict{'; Secure' if tls else ''}"
    return Open(200, (_JSON, ("set-cookie", cookie)), b'"ok"')
