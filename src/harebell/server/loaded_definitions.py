"""Import the definitions that the configuration names (`load_definitions`) at the start."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from harebell.admin.definitions.entries import DefinitionsError, ImportTarget
from harebell.admin.definitions.importer import import_definitions, parse

HASH_PARAMETER = "imported_definition_hash_value"
"""The global parameter with the hash of what was loaded, as in RabbitMQ."""


def load_definitions(
    target: ImportTarget, path: Path, log: Callable[[str, str], None], *, skip_if_unchanged: bool
) -> None:
    """Import a file, or all files of a directory in the order of their names.

    Args:
        target: the broker, before clients connect.
        path: the file or directory.
        log: takes a level and a line about what was imported.
        skip_if_unchanged: do not import if the content is the same as at the last import.

    Raises:
        DefinitionsError: a file cannot be read, or an entry is invalid.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    contents = [(file, _content(file)) for file in files]
    known = target.broker.global_parameters
    digest = hashlib.sha256(b"\0".join(content for _, content in contents)).hexdigest()
    if skip_if_unchanged and known.values.get(HASH_PARAMETER) == digest:
        log("info", f"definitions in {path} are unchanged, they are not loaded")
        return
    for file, content in contents:
        _import(target, file, content, log)
    if skip_if_unchanged:
        known.put(HASH_PARAMETER, digest)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DefinitionsError(
            f"cannot read the definitions {file}: {error.strerror or error}"
        ) from None


def _import(
    target: ImportTarget, file: Path, content: bytes, log: Callable[[str, str], None]
) -> None:
    try:
        imported = import_definitions(target, parse(content))
    except DefinitionsError as error:
        raise DefinitionsError(f"the definitions {file} cannot be loaded: {error}") from None
    log("info", f"definitions were loaded: {imported}")
    for sentence in imported.left_out:
        log("warning", f"left out: {sentence}")
    for sentence in imported.ignored:
        log("warning", f"kept: {sentence}")
