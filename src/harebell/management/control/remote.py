"""Send commands to a broker on another machine, over its HTTP API.

The requests are those of the control socket, as `POST /api/admin/queues.purge` with the fields in
JSON, with the user and password of the URL. Certificates are checked, and no error text has the
password.
"""

from __future__ import annotations

import http.client
import os
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from harebell.admin.limits import HTTP_CHUNK_BYTES
from harebell.management.control.client import (
    AWAY_HEADER,
    WRONG_ARGUMENT,
    CommandError,
    ControlError,
    NotRunning,
    missing_stores,
)
from harebell.server.limits import CONTROL_COMMAND_SECONDS

CA_VARIABLE = "HAREBELL_SERVER_CA"
PASSWORD_VARIABLE = "HAREBELL_SERVER_PASSWORD"  # noqa: S105  # the name of a variable
PASSWORD_FILE_VARIABLE = "HAREBELL_SERVER_PASSWORD_FILE"  # noqa: S105  # the name of a variable
_PORTS = {"http": 15672, "https": 15671}
_AUTHENTICATION = "not_authorized"
"""The error of a wrong login; a missing right is `not_authorised`, as in RabbitMQ."""


class ServerError(ControlError):
    """The address of the server, its password or its certificates cannot be used."""


class Address(NamedTuple):
    """Where a broker is administrated.

    Args:
        tls: whether TLS is used.
        host: a name or an IP address.
        port: where the HTTP API listens.
        path: the start of the paths, without a "/" at its end.
        user: the name to log in with.
        password: the password in the URL; None for none.
    """

    tls: bool
    host: str
    port: int
    path: str
    user: str
    password: str | None

    @property
    def shown(self) -> str:
        """The address without the user and the password."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}{self.path}"


def address_of(url: str) -> Address:
    """Parse the URL of a server, such as https://ann@broker.example:15671.

    Raises:
        ServerError: it is not one; the text does not repeat it, as it may have a password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ServerError("the server is not a URL: write https://USER@HOST:PORT") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise ServerError("the server is not a URL: write https://USER@HOST:PORT")
    return Address(
        parts.scheme == "https",
        parts.hostname,
        port or _PORTS[parts.scheme],
        parts.path.rstrip("/"),
        unquote(parts.username or "guest"),
        None if parts.password is None else unquote(parts.password),
    )


def password_of(
    address: Address, environ: Mapping[str, str], ask: Callable[[str], str | None]
) -> str:
    """Return the password: from the URL, a file, the environment, or the user.

    Args:
        address: the server.
        environ: the environment.
        ask: asks the user with a text; returns None where there is no terminal.

    Raises:
        ServerError: there is none, or its file cannot be read.
    """
    if address.password is not None:
        return address.password
    file = environ.get(PASSWORD_FILE_VARIABLE)
    if file:
        try:
            return Path(file).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8"
            raise ServerError(f"cannot read the password file {file}: {reason}") from None
    if PASSWORD_VARIABLE in environ:
        return environ[PASSWORD_VARIABLE]
    answer = ask(f"Password of {address.user} for {address.shown}")
    if answer is None:
        raise ServerError(
            f"no password for user '{address.user}': set {PASSWORD_FILE_VARIABLE} to a file that "
            f"has it, or {PASSWORD_VARIABLE}"
        )
    return answer


class Remote:
    """The HTTP API of a broker.

    Args:
        address: where it is.
        password: the password of the user.
        ca: a PEM file with the certificates of authorities; None for those of the system.
    """

    def __init__(self, address: Address, password: str, ca: str | None) -> None:
        self._address = address
        self._login = "Basic " + b64encode(f"{address.user}:{password}".encode()).decode()
        self._tls: ssl.SSLContext | None = None
        if address.tls:
            try:
                self._tls = ssl.create_default_context(cafile=ca)
            except OSError as error:
                why = error.strerror or error
                raise ServerError(f"cannot read the certificates {ca}: {why}") from None

    def ask(
        self,
        command: str,
        fields: Mapping[str, Any],
        patience: float = CONTROL_COMMAND_SECONDS,
        missing: Callable[[str], object] = str,
    ) -> Any:
        """Run a command and return its answer.

        Args:
            command: its name, such as "queues.purge".
            fields: its arguments.
            patience: timeout in seconds.
            missing: called with a sentence if the answer has nothing of some stores of a cluster.

        Raises:
            NotRunning: nothing answers there, or the login is refused.
            ControlError: the request failed, or the broker refused it.
        """
        link, answer = self._send(command, fields, patience)
        try:
            away = answer.getheader(AWAY_HEADER)
            if away:
                missing(missing_stores(away))
            return msgspec.json.decode(answer.read())
        except (msgspec.DecodeError, http.client.HTTPException, OSError) as error:
            raise self._unanswered(error) from None
        finally:
            link.close()

    def ask_rows(
        self, command: str, fields: Mapping[str, Any], patience: float = CONTROL_COMMAND_SECONDS
    ) -> Iterator[list[dict[str, Any]]]:
        """Run a command with a stream of rows, and yield its rows in batches.

        The arguments and errors are those of `ask`.
        """
        link, answer = self._send(command, fields, patience)
        rest = b""
        try:
            while data := answer.read1(HTTP_CHUNK_BYTES):
                *lines, rest = (rest + data).split(b"\n")
                rows = [msgspec.json.decode(line, type=dict[str, Any]) for line in lines if line]
                for row in rows:
                    if set(row) == {"error", "reason"}:
                        raise CommandError(f"at {self._address.shown}", str(row["reason"]))
                yield rows
        except (msgspec.DecodeError, http.client.HTTPException, OSError) as error:
            raise self._unanswered(error) from None
        finally:
            link.close()

    def _send(
        self, command: str, fields: Mapping[str, Any], patience: float
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        address = self._address
        try:
            body = msgspec.json.encode(fields)
        except UnicodeEncodeError:
            raise ControlError("a name or a value is not UTF-8: write it in UTF-8") from None
        link: http.client.HTTPConnection
        if self._tls is None:
            link = http.client.HTTPConnection(address.host, address.port, timeout=patience)
        else:
            link = http.client.HTTPSConnection(
                address.host, address.port, timeout=patience, context=self._tls
            )
        headers = {"authorization": self._login, "content-type": "application/json"}
        try:
            link.request("POST", f"{address.path}/api/admin/{command}", body, headers)
            answer = link.getresponse()
            if answer.status != http.HTTPStatus.OK:
                raise self._refusal(answer.status, answer.read())
        except (http.client.HTTPException, OSError) as error:
            link.close()
            raise self._unanswered(error) from None
        except ControlError:
            link.close()
            raise
        return link, answer

    def _unanswered(self, error: Exception) -> ControlError:
        why = (
            str(getattr(error, "verify_message", ""))
            or getattr(error, "strerror", "")
            or str(error)
        )
        if isinstance(error, ssl.SSLCertVerificationError):
            return NotRunning(
                f"the certificate of {self._address.shown} is refused: {why.strip('.')}; "
                f"{CA_VARIABLE} names the certificates of its authority"
            )
        return NotRunning(f"no broker answers at {self._address.shown}: {why}")

    def _refusal(self, status: int, body: bytes) -> ControlError:
        where = self._address.shown
        try:
            answer = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.DecodeError:
            return ControlError(f"{where} answered with status {status}, and is no Harebell broker")
        reason = str(answer.get("reason", status))
        if status == http.HTTPStatus.UNAUTHORIZED and answer.get("error") == _AUTHENTICATION:
            return NotRunning(f"{where} refuses the login of '{self._address.user}': {reason}")
        wrong = answer.get("error") == WRONG_ARGUMENT
        return CommandError(f"at {where}", reason, wrong=wrong)


def configured(url: str, ask: Callable[[str], str | None]) -> Remote:
    """Return a server, with the password and the certificates that the environment names.

    Args:
        url: `http://` or `https://`, with a user if the variables name none.
        ask: asks the user for the password, see `password_of`.

    Raises:
        ServerError: its address, password or certificates cannot be used.
    """
    address = address_of(url)
    password = password_of(address, os.environ, ask)
    return Remote(address, password, os.environ.get(CA_VARIABLE) or None)
