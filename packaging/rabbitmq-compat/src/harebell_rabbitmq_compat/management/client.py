"""Send requests to the management HTTP API."""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import ssl
from urllib.parse import urlsplit


class RequestFailed(Exception):
    """A request failed; the text is for the user."""


class Api:
    """The HTTP API of a broker.

    Args:
        settings: host, port, user, password and TLS, as `settings_of` returns them.
    """

    def __init__(self, settings: argparse.Namespace) -> None:
        self._settings = settings
        self._host = str(settings.hostname)
        self._port = int(settings.port)

    def send(self, method: str, path: str, body: str | None = None) -> str:
        """Send a request and return the body of the answer.

        Args:
            method: the method of HTTP.
            path: the path below `/api`, with a `/` at its start.
            body: JSON; None for none.

        Raises:
            RequestFailed: the broker does not answer, or refuses the request.
        """
        return self._send(method, f"{self._settings.path_prefix}/api{path}", body)

    def _send(self, method: str, path: str, body: str | None) -> str:
        login = f"{self._settings.username}:{self._settings.password}".encode()
        headers = {"Authorization": "Basic " + base64.b64encode(login).decode()}
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection = self._connection()
        try:
            connection.request(method, path, body and body.encode(), headers)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8")
        except TimeoutError:
            raise RequestFailed(
                "Timed out getting HTTP response (request timeout: "
                f"{self._settings.request_timeout} seconds)"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise RequestFailed(f"Could not connect: {error}") from None
        finally:
            connection.close()
        if answer.status == http.HTTPStatus.MOVED_PERMANENTLY:
            return self._moved(method, str(answer.getheader("location")), body)
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise RequestFailed(_refusal(answer.status, answer.reason, path, text))
        return text

    def _moved(self, method: str, location: str, body: str | None) -> str:
        parts = urlsplit(location)
        self._host, self._port = parts.hostname or self._host, parts.port or self._port
        return self._send(
            method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body
        )

    def _connection(self) -> http.client.HTTPConnection:
        seconds = int(self._settings.request_timeout)
        if not self._settings.ssl:
            return http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=seconds, context=self._context()
        )

    def _context(self) -> ssl.SSLContext:
        settings = self._settings
        try:
            context = ssl.create_default_context(cafile=getattr(settings, "ssl_ca_cert_file", None))
            if settings.ssl_insecure or settings.ssl_disable_hostname_verification:
                context.check_hostname = False
            if settings.ssl_insecure:
                context.verify_mode = ssl.CERT_NONE
            certificate = getattr(settings, "ssl_cert_file", None)
            if certificate is not None:
                context.load_cert_chain(certificate, getattr(settings, "ssl_key_file", None))
        except OSError as error:
            raise RequestFailed(f"Could not read the certificates: {error}") from None
        return context


def _refusal(status: int, words: str, path: str, text: str) -> str:
    """Describe an answer that is an error."""
    if status == http.HTTPStatus.UNAUTHORIZED:
        return f"Access refused: {path}"
    if status == http.HTTPStatus.NOT_FOUND:
        return f"Not found: {path}"
    try:
        answer = json.loads(text)
        reason = answer.get("reason") or answer.get("error")
    except (ValueError, AttributeError):
        reason = None
    if status == http.HTTPStatus.BAD_REQUEST and reason is not None:
        return str(reason)
    return f"Received response {status} {words} for path {path}\n{reason or text}"
