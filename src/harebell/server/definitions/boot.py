"""Definitions from a file at the start of a broker (`load_definitions`)."""

from __future__ import annotations

from pathlib import Path

from harebell.server.definitions.entries import DefinitionsError
from harebell.server.definitions.inward import Taken, parse, take_in
from harebell.server.definitions.place import Place


def load_file(place: Place, path: Path) -> Taken:
    """Take in what a file declares.

    Raises:
        DefinitionsError: it cannot be read, or an entry cannot be had, in a sentence.
    """
    try:
        return take_in(place, parse(path.read_bytes()))
    except OSError as error:
        raise DefinitionsError(
            f"cannot read the definitions {path}: {error.strerror or error}"
        ) from None
    except DefinitionsError as error:
        raise DefinitionsError(f"the definitions {path} cannot be loaded: {error}") from None
