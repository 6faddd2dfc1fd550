"""Import the definitions that the configuration names at the start: files, or a document by HTTPS.

Everything is read before anything is imported, and what is imported is written with the first
commit: a source that fails ends the start and changes nothing. Clients come after that commit.

With several workers their supervisor reads the sources, and each worker gets the part of its store
in a file in memory that it inherits: see `cluster/workers/definitions_parts.py`.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import ssl
from base64 import b64encode
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

import msgspec

from harebell.admin.definitions.entries import DefinitionsError, ImportTarget
from harebell.admin.definitions.importer import import_definitions, not_loaded, parse
from harebell.server.limits import DEFINITIONS_BYTES, DEFINITIONS_SECONDS

if TYPE_CHECKING:
    from harebell.config import Config

HTTPS = "https"
"""The value of definitions_import_backend for a document by HTTPS."""
VARIABLE = "_HAREBELL_DEFINITIONS"
"""The variable with the descriptor of the file that a worker has inherited."""
HASH_PARAMETER = "imported_definition_hash_value"
"""The global parameter with the hash of what was loaded, as in RabbitMQ."""


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirects: the password would go to another server, or over plain HTTP."""

    def redirect_request(self, *_given: Any) -> None:
        """Return no request: the redirect is the error."""


class Sources(NamedTuple):
    """What is to be imported.

    Args:
        contents: the name of each source, and the document in it.
        digest: the SHA-256 of all of them, in hexadecimal.
    """

    contents: list[tuple[str, bytes]]
    digest: str


def read_sources(config: Config) -> Sources:
    """Return the definitions that the configuration names.

    Args:
        config: names a file, a directory whose files are imported by their names, or a URL.

    Raises:
        DefinitionsError: a source cannot be read.
    """
    contents = _contents(config)
    return Sources(
        contents, hashlib.sha256(b"\0".join(content for _, content in contents)).hexdigest()
    )


def bequeathed(sources: Sources, environ: MutableMapping[str, str]) -> int:
    """Return a file in memory with sources for a process that inherits it; the caller closes it.

    Args:
        sources: the part of that process.
        environ: gets the variable that names the file.

    Raises:
        OSError: there is no memory, or there are too many files.
    """
    handle = os.memfd_create("harebell-definitions", 0)
    with os.fdopen(os.dup(handle), "wb") as file:
        file.write(msgspec.json.encode(sources))
    environ[VARIABLE] = str(handle)
    return handle


def inherited(environ: MutableMapping[str, str]) -> Sources:
    """Return the part of this process; nothing if it has inherited none."""
    number = environ.pop(VARIABLE, "")
    if not number:
        return Sources([], "")
    with os.fdopen(int(number), "rb") as file:
        file.seek(0)
        return msgspec.json.decode(file.read(), type=Sources)


def load_definitions(target: ImportTarget, config: Config, log: Callable[[str, str], None]) -> None:
    """Import what the configuration names; nothing if it names nothing.

    Args:
        target: the broker, before clients connect.
        config: names the sources.
        log: takes a level and a line about what was imported.

    Raises:
        DefinitionsError: a source cannot be read, or an entry is invalid.
    """
    several = config.storage_stores > 1
    contents, digest = inherited(os.environ) if several else read_sources(config)
    parameters = target.broker.global_parameters
    skips = config.definitions_skip_if_unchanged
    if skips and parameters.values.get(HASH_PARAMETER) == digest:
        names = ", ".join(name for name, _ in contents)
        log("info", f"definitions in {names} are unchanged, they are not loaded")
        return
    for name, content in contents:
        _import(target, name, content, log)
    if skips and contents:
        parameters.put(HASH_PARAMETER, digest)


def _contents(config: Config) -> list[tuple[str, bytes]]:
    """Return the names of sources and what is in them.

    Raises:
        DefinitionsError: one cannot be read.
    """
    if config.definitions_import_backend == HTTPS:
        return [_fetched(config)]
    path = config.load_definitions
    if path is None:
        return []
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    return [(str(file), _content(file)) for file in files]


def _fetched(config: Config) -> tuple[str, bytes]:
    """Return the document of `definitions_https_url`, and the URL without a password.

    Raises:
        DefinitionsError: it cannot be had.
    """
    url = config.definitions_https_url
    if url is None:
        raise DefinitionsError(
            "definitions_import_backend is https, and definitions_https_url is missing: set it"
        )
    parts = urlsplit(url)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    shown = bare._replace(query="").geturl()
    failed = f"the definitions cannot be fetched from {shown}"
    # The configuration has checked that the scheme is https.
    request = Request(bare.geturl(), headers={"Accept": "application/json"})  # noqa: S310
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {b64encode(login.encode()).decode()}")
    opener = build_opener(HTTPSHandler(context=_tls(config, failed)), _NoRedirect)
    try:
        with opener.open(request, timeout=DEFINITIONS_SECONDS) as answer:
            content: bytes = answer.read(DEFINITIONS_BYTES + 1)
    except HTTPError as error:
        raise DefinitionsError(
            f"{failed}: the server answers {error.code} {error.reason}"
        ) from None
    except URLError as error:
        raise DefinitionsError(f"{failed}: {error.reason}") from None
    except (OSError, http.client.HTTPException) as error:
        raise DefinitionsError(f"{failed}: {error}") from None
    if len(content) > DEFINITIONS_BYTES:
        raise DefinitionsError(f"{failed}: they have more than {DEFINITIONS_BYTES} bytes")
    return shown, content


def _tls(config: Config, failed: str) -> ssl.SSLContext:
    """Return the TLS context for the server of the definitions.

    Raises:
        DefinitionsError: a file of it is unusable.
    """
    try:
        context = ssl.create_default_context(cafile=config.definitions_tls_ca)
        if config.definitions_tls_verify == "verify_none":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if config.definitions_tls_cert is not None:
            password = config.definitions_tls_key_password or ""
            context.load_cert_chain(
                config.definitions_tls_cert, config.definitions_tls_key, lambda: password
            )
    except (OSError, ssl.SSLError) as error:
        raise DefinitionsError(
            f"{failed}: a file of definitions_tls is unusable: {error}"
        ) from None
    return context


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DefinitionsError(
            f"cannot read the definitions {file}: {error.strerror or error}"
        ) from None


def parsed(name: str, content: bytes) -> dict[str, Any]:
    """Return the document of a source.

    Raises:
        DefinitionsError: it is none.
    """
    with not_loaded(name):
        return parse(content)


def _import(
    target: ImportTarget, name: str, content: bytes, log: Callable[[str, str], None]
) -> None:
    document = parsed(name, content)
    with not_loaded(name):
        imported = import_definitions(target, document)
    log("info", f"definitions were loaded: {imported}")
    for sentence in imported.left_out:
        log("warning", f"left out: {sentence}")
    for sentence in imported.ignored:
        log("warning", f"kept: {sentence}")
