"""Make the TLS context of the server from the configured files, and reload changed files.

New connections use the current context; existing connections keep theirs. If a changed file is
unusable, the previous context stays in use and an error is logged.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from harebell.base.errors import HarebellError

if TYPE_CHECKING:
    from harebell.config import Config

VERIFY_NONE = "verify_none"
VERIFY_PEER = "verify_peer"
VERSIONS = {"tlsv1.2": ssl.TLSVersion.TLSv1_2, "tlsv1.3": ssl.TLSVersion.TLSv1_3}

_Stamp = tuple[tuple[int, int, int] | None, ...]


class StartError(HarebellError):
    """The broker cannot start; the text is a sentence for the user."""


class _EncryptedError(Exception):
    """The key needs a passphrase, and none is configured."""


def tls_context(config: Config) -> ssl.SSLContext:
    """Return the TLS context of the server from the configured files.

    Raises:
        StartError: a file is missing or unusable.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = VERSIONS[config.tls_min_version]
    try:
        if config.tls_ciphers:
            context.set_ciphers(config.tls_ciphers)
        context.load_cert_chain(config.tls_cert or "", config.tls_key or None, _passphrase(config))
        if config.tls_ca:
            context.load_verify_locations(config.tls_ca)
            context.verify_mode = _verify_mode(config)
    except _EncryptedError:
        raise StartError(
            f"the key {config.tls_key} is encrypted: give its passphrase in "
            "HAREBELL_TLS_KEY_PASSWORD or in a file that tls_key_password_file names"
        ) from None
    except (OSError, ValueError) as error:
        files = ", ".join(file for file in _files(config) if file)
        raise StartError(f"cannot use the TLS files {files}: {error}") from None
    return context


def _verify_mode(config: Config) -> ssl.VerifyMode:
    if config.tls_verify == VERIFY_NONE:
        return ssl.CERT_NONE
    # As in RabbitMQ: `verify_peer` alone admits a client without a certificate.
    return ssl.CERT_REQUIRED if config.tls_fail_if_no_peer_cert else ssl.CERT_OPTIONAL


def _passphrase(config: Config) -> Callable[[], str]:
    """Return the callback for encrypted keys; without one, OpenSSL would prompt on the terminal."""

    def passphrase() -> str:
        if config.tls_key_password is not None:
            return config.tls_key_password
        if config.tls_key_password_file is None:
            raise _EncryptedError
        text = Path(config.tls_key_password_file).read_text(encoding="utf-8")
        return text.removesuffix("\n").removesuffix("\r")

    return passphrase


def _files(config: Config) -> tuple[str | None, ...]:
    return (config.tls_cert, config.tls_key, config.tls_ca, config.tls_key_password_file)


class ServerTls:
    """The TLS context for new connections.

    Args:
        config: the configuration with the paths.
        log: called with a level and a line.

    Attributes:
        config: the configuration with the paths in use.
        context: the context of the last usable files.

    Raises:
        StartError: a file is missing or unusable.
    """

    def __init__(self, config: Config, log: Callable[[str, str], None]) -> None:
        self.config = config
        self._log = log
        # Before the files are read: a file that changes meanwhile is read again by `look`.
        self._stamp = self._stamps()
        self.context = tls_context(config)

    def use(self, config: Config, context: ssl.SSLContext) -> None:
        """Use the files of a new configuration, from which `context` was made."""
        self.context = context
        self.config = config
        self._stamp = self._stamps()

    def look(self) -> None:
        """Reload the files if they have changed."""
        stamp = self._stamps()
        if stamp != self._stamp:
            # Also for an unusable file, which would be reported at every tick otherwise.
            self._stamp = stamp
            try:
                self.context = tls_context(self.config)
            except StartError as error:
                self._log("error", f"{error}; the TLS files from before stay in use")
            else:
                self._log("info", "the TLS files were read again, for connections from now on")

    def _stamps(self) -> _Stamp:
        return tuple(_stamp(file) for file in _files(self.config) if file)


def _stamp(file: str) -> tuple[int, int, int] | None:
    """Return inode, size and mtime: they change with the content or the target of a symlink."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
