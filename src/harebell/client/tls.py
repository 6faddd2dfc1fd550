"""TLS for amqps:// addresses. The certificate is verified unless the address disables it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from harebell.client.errors import ConnectionFailed, ConnectTimeout
from harebell.client.url import URL, VERIFY_NONE, VERIFY_PEER, URLError


def client_context(url: URL) -> ssl.SSLContext:
    """Return the TLS settings for an address.

    Raises:
        ConnectionFailed: a certificate file cannot be read.
    """
    try:
        context = ssl.create_default_context(cafile=url.cacertfile)
        if url.certfile is not None:
            context.load_cert_chain(url.certfile, url.keyfile)
    except (OSError, ssl.SSLError) as error:
        files = [name for name in (url.cacertfile, url.certfile, url.keyfile) if name is not None]
        raise ConnectionFailed(
            f"the TLS files {', '.join(files)} cannot be used: {error}"
        ) from error
    if url.verify == VERIFY_NONE:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def chosen_context(url: URL, given: ssl.SSLContext | None) -> ssl.SSLContext | None:
    """Return the TLS settings of a connection; None without TLS.

    Args:
        url: the address.
        given: settings of the program, instead of those of the address.

    Raises:
        URLError: the address contradicts them.
        ConnectionFailed: a certificate file cannot be read.
    """
    if given is None:
        return client_context(url) if url.tls else None
    if not url.tls:
        raise URLError("ssl_context is given, but the address does not begin with amqps://")
    for name in ("cacertfile", "certfile", "keyfile"):
        if getattr(url, name) is not None:
            raise URLError(f"ssl_context and {name} are both given: the context says all of it")
    if url.verify != VERIFY_PEER:
        raise URLError(f"ssl_context and verify={url.verify} are both given: say it in the context")
    return given


def server_name(url: URL) -> str:
    """Return the name for SNI and for the verification of the certificate."""
    return url.server_name_indication or url.host


def explain(url: URL, error: ssl.SSLError) -> ConnectionFailed:
    """Return an explanation of a failed TLS handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ConnectionFailed(
            f"the certificate of {url.address} was not accepted for {server_name(url)!r}: "
            f"{error.verify_message} (cacertfile=... names the authority to trust)"
        )
    reason = error.reason or str(error)
    if reason == "WRONG_VERSION_NUMBER":
        reason = "the server does not speak TLS there; use amqp:// or its TLS port"
    return ConnectionFailed(f"TLS with {url.address} failed: {reason}")


@contextmanager
def dialling(url: URL) -> Iterator[None]:
    """Raise the error of opening a socket as that of the client.

    Raises:
        ConnectionFailed: it failed; the text has the address and the reason.
    """
    try:
        yield
    except TimeoutError:
        seconds = url.connection_timeout
        raise ConnectTimeout(f"{url.address} did not answer in {seconds:g} seconds") from None
    except ssl.SSLError as error:
        raise explain(url, error) from error
    except OSError as error:
        raise ConnectionFailed(f"cannot connect to {url.address}: {error}") from error
