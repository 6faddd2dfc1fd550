"""The OpenAPI 3.1 document of the HTTP API, made from the descriptions of the commands.

A route has the arguments of its path as path parameters. For GET and DELETE the others are query
parameters, and for PUT and POST members of the body.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from harebell import __version__
from harebell.admin.command import REQUIRED
from harebell.base.slices import at_once

if TYPE_CHECKING:
    from collections.abc import Iterable

    from harebell.admin.command import Command, Parameter
    from harebell.base.slices import Slices
    from harebell.management.http.routes import Route

_IN_QUERY = ("GET", "DELETE")
_REFUSALS = {
    "400": "The request is wrong.",
    "401": "The login is missing or wrong, or the user may not.",
    "404": "There is no such object.",
    "413": "The body is too large.",
}
_ERROR = {
    "type": "object",
    "required": ["error", "reason"],
    "properties": {"error": {"type": "string"}, "reason": {}},
}
_LIST_PARAMETERS = (
    ("page", "integer"),
    ("page_size", "integer"),
    ("name", "string"),
    ("use_regex", "boolean"),
    ("sort", "string"),
    ("sort_reverse", "boolean"),
    ("columns", "string"),
)


def encoded_document(routes: Iterable[Route], prefix: str) -> Slices[tuple[bytes, str]]:
    """Return the OpenAPI document as JSON, and its entity tag.

    Args:
        routes: what the description is made of.
        prefix: the start of all paths; "" for none.
    """
    body = msgspec.json.encode((yield from described(routes, prefix)))
    return body, f'"{sha256(body).hexdigest()[:16]}"'


def document(routes: Iterable[Route], prefix: str) -> dict[str, Any]:
    """Return the OpenAPI document, without interruption.

    Args:
        routes: what the description is made of.
        prefix: the start of all paths; "" for none.
    """
    return at_once(described(routes, prefix))


def described(routes: Iterable[Route], prefix: str) -> Slices[dict[str, Any]]:
    """Return the OpenAPI document, a route in a slice.

    Args:
        routes: what the description is made of.
        prefix: the start of all paths; "" for none.
    """
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
        yield
    return {
        "openapi": "3.1.0",
        "info": {"title": "Harebell", "version": __version__},
        "servers": [{"url": prefix or "/"}],
        "security": [{"basic": []}, {"bearer": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            },
            "schemas": {"Error": _ERROR},
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    command = route.command
    names = re.findall(r"{(\w+)}", route.path)
    others = [each for each in command.parameters if each.name not in names]
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]
    operation: dict[str, Any] = {
        "operationId": f"{route.method.lower()}{re.sub(r'[^A-Za-z0-9]+', '_', route.path)}",
        "summary": route.summary,
        "tags": [command.noun.name],
        "description": f"Needs the tag {command.tag or 'management'}.",
        "responses": _responses(route),
    }
    if route.method in _IN_QUERY:
        parameters += [_query(each) for each in others]
        if route.method == "GET" and command.columns:
            parameters += [
                {"name": name, "in": "query", "schema": {"type": kind}}
                for name, kind in _LIST_PARAMETERS
            ]
    elif others:
        operation["requestBody"] = _body(others)
    if parameters:
        operation["parameters"] = parameters
    return operation


def _query(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": "query",
        "required": _is_required(parameter),
        "schema": _schema(parameter),
    }


def _is_required(parameter: Parameter) -> bool:
    return parameter.default is REQUIRED and parameter.argument.over_http is None


def _body(parameters: list[Parameter]) -> dict[str, Any]:
    if any(each.argument.body for each in parameters):
        schema: dict[str, Any] = {"type": "object"}
    else:
        schema = {
            "type": "object",
            "properties": {each.name: _schema(each) for each in parameters},
            "required": [each.name for each in parameters if _is_required(each)],
        }
    required = any(_is_required(each) for each in parameters)
    return {"required": required, "content": {"application/json": {"schema": schema}}}


def _schema(parameter: Parameter) -> dict[str, Any]:
    (schema,), _ = msgspec.json.schema_components([parameter.type])
    if parameter.argument.choices:
        schema = {"enum": list(parameter.argument.choices)}
    return schema


def _responses(route: Route) -> dict[str, Any]:
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    responses: dict[str, Any] = {
        status: {"description": text} for status, text in _successes(route).items()
    }
    for status, text in _REFUSALS.items():
        responses[status] = {"description": text, "content": error}
    if route.command.noun.name == "health":
        responses["503"] = {"description": "The check failed."}
    return responses


def _successes(route: Route) -> dict[str, str]:
    command: Command = route.command
    if command.status:
        return {str(command.status): "It is done."}
    if route.method == "GET":
        return {"200": "The answer."}
    if route.method == "PUT":
        return {"201": "It was made.", "204": "It was there, and is now as asked."}
    return {"204": "It is done."}
