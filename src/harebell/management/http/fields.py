"""Read the arguments of a command from a request: its path, its query and its body.

The path decides before the body and the query. Names may have "-" for "_". Fields that a command
does not have are ignored, as RabbitMQ's clients send names that are in the path already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec

from harebell.management.http.errors import bad_request, wrong_argument
from harebell.management.limits import HTTP_ARGUMENTS_BYTES
from harebell.management.sliced_json import decoded

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
    given.update(_arguments(query, parameters))
    whole = next((each.name for each in parameters.values() if each.argument.body), None)
    if whole is not None:
        given[whole] = yield from _definitions(body)
    elif body:
        long = next((each.name for each in parameters.values() if each.argument.long), "")
        given.update(_arguments((yield from _object(body, long)), parameters))
    if reason and _REASON in parameters:
        given[_REASON] = reason
    given.update(path)
    try:
        return command.arguments_of(given, strict=False)
    except msgspec.ValidationError as error:
        raise bad_request(str(error)) from None


def fields_by_name(command: Command, body: bytes) -> Slices[dict[str, Any]]:
    """Return the arguments of a command that is run by its name, checked as by the control socket.

    Raises:
        HttpError: 400, the body is not an object, or a field is missing, unknown or wrong.
    """
    try:
        fields = yield from decoded(body or b"{}", value_max=HTTP_ARGUMENTS_BYTES)
        if not isinstance(fields, dict):
            raise bad_request("not_json: the body is not a JSON object")
        return command.arguments_of(fields)
    except (msgspec.ValidationError, RecursionError) as error:
        raise wrong_argument(f"{command.name}: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"not_json: the body is not JSON: {error}") from None


def _arguments(values: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return the values that are arguments; `[]` stands for an empty table, as in RabbitMQ."""
    arguments = {}
    for name, value in values.items():
        parameter = parameters.get(name.replace("-", "_"))
        if parameter is None:
            continue
        if value == [] and _is_table(parameter):
            value = {}
        arguments[parameter.name] = value
    return arguments


def _is_table(parameter: Parameter) -> bool:
    return getattr(parameter.type, "__origin__", None) is dict


def _object(body: bytes, long: str = "") -> Slices[dict[str, Any]]:
    """Decode an object; no text but that of the member `long` may have more than fits a frame."""
    try:
        value = yield from decoded(body, long, HTTP_ARGUMENTS_BYTES)
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
