"""The broker's certificate at the cluster port.

Clients may have to show certificates of their own; brokers prove who they are with the secret of
the cluster. So the cluster port has a context of its own, which is made again when the broker reads
its files again.
"""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from harebell.server.net.tls import ServerTls, StartError, tls_context

if TYPE_CHECKING:
    from harebell.server.config import Config

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


class LinkTls:
    """The TLS context of the cluster port.

    Args:
        tls: the one of the listeners for clients.

    Raises:
        StartError: a file is missing or unusable.
    """

    def __init__(self, tls: ServerTls) -> None:
        self._tls = tls
        self._seen = tls.context
        self._context = _without_client_certificates(tls.config)
        self._fingerprint = _fingerprint(tls.config)

    @property
    def context(self) -> ssl.SSLContext:
        """Return the context for new connections."""
        self._look()
        return self._context

    @property
    def fingerprint(self) -> str:
        """Return SHA-256 of the certificate for new connections, in hexadecimal digits."""
        self._look()
        return self._fingerprint

    def _look(self) -> None:
        """Use the files that the listeners use; those from before if they cannot be read again."""
        if self._tls.context is self._seen:
            return
        self._seen = self._tls.context
        try:
            self._context = _without_client_certificates(self._tls.config)
            self._fingerprint = _fingerprint(self._tls.config)
        except StartError:
            return


def fingerprint_of(encoded: bytes) -> str:
    """Return SHA-256 of a certificate in DER, in hexadecimal digits."""
    return hashlib.sha256(encoded).hexdigest()


def _without_client_certificates(config: Config) -> ssl.SSLContext:
    context = tls_context(config)
    context.verify_mode = ssl.CERT_NONE
    return context


def _fingerprint(config: Config) -> str:
    """Return the fingerprint of the first certificate in the file, which is the broker's."""
    path = config.tls_cert or ""
    try:
        text = Path(path).read_text(encoding="ascii", errors="replace")
        block = _BEGIN + text.partition(_BEGIN)[2].partition(_END)[0] + _END
        return fingerprint_of(ssl.PEM_cert_to_DER_cert(block))
    except (OSError, ValueError) as error:
        raise StartError(f"cannot read the certificate {path}: {error}") from None
