"""Read the fields of a command from a request: its path, its query and its body.

The path decides before the body and the query. Names may have "-" for "_". Fields that a command
does not have are ignored, as RabbitMQ's clients send names that are in the path already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from harebell.server.http.errors import bad_request
from harebell.server.sliced_json import decoded

if TYPE_CHECKING:
    from harebell.admin.command import Command, Parameter
    from harebell.base.slices import Slices

_REASON = "reason"
REASON_HEADER = "x-reason"


def query_of(raw: bytes) -> dict[str, str]:
    """Decode a query; the last value of a name counts.

    Raises:
        HttpError: 400, it is not UTF-8 or too long.
    """
    try:
        pairs = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError as error:
        raise bad_request(f"the query cannot be read: {error}") from None
    return dict(pairs)


def fields_of(
    command: Command,
    path: Mapping[str, str],
    query: Mapping[str, str],
    body: bytes,
    reason: str | None,
) -> Slices[dict[str, Any]]:
    """Return the arguments of a command, checked.

    Args:
        command: what says which fields there are, and their types.
        path: the arguments in the path.
        query: what follows the "?", decoded.
        body: the body; b"" for none.
        reason: the header `x-reason`.

    Raises:
        HttpError: 400, a field is missing or wrong; the text names it.
    """
    parameters = {each.name: each for each in command.parameters}
    given: dict[str, Any] = {
        name: each.argument.over_http
        for name, each in parameters.items()
        if each.argument.over_http is not None
    }
    given.update(_known(query, parameters))
    whole = next((each.name for each in parameters.values() if each.argument.body), None)
    if whole is not None:
        given[whole] = yield from _definitions(body)
    elif body:
        given.update(_known((yield from _object(body)), parameters))
    if reason and _REASON in parameters:
        given[_REASON] = reason
    given.update(path)
    try:
        return command.arguments_of(given, strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(str(error)) from None


def _known(values: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return the values that are arguments; `[]` stands for an empty table, as in RabbitMQ."""
    found = {}
    for name, value in values.items():
        parameter = parameters.get(name.replace("-", "_"))
        if parameter is None:
            continue
        if value == [] and _is_table(parameter):
            value = {}
        found[parameter.name] = value
    return found


def _is_table(parameter: Parameter) -> bool:
    return getattr(parameter.type, "__origin__", None) is dict


def _object(body: bytes) -> Slices[dict[str, Any]]:
    try:
        value = yield from decoded(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"not_json: the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise bad_request("not_json: the body is not a JSON object")
    return value


def _definitions(body: bytes) -> Slices[dict[str, Any]]:
    """Decode definitions, and check that they are some."""
    from harebell.admin.definitions.entries import DefinitionsError
    from harebell.admin.definitions.importer import checked_document

    try:
        return checked_document((yield from _object(body)))
    except DefinitionsError as error:
        raise bad_request(str(error)) from None
