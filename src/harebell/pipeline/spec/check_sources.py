"""Check the sources of a pipeline file: options of the format `harebell`, and bodies."""

from __future__ import annotations

import json
import re

from harebell.pipeline.errors import Complaints
from harebell.pipeline.spec import statements
from harebell.pipeline.spec.description import (
    FORMATS,
    MANY,
    ON_ERROR,
    ONE,
    Body,
    Route,
    Source,
    Watermark,
)
from harebell.pipeline.spec.values import list_of, text_of, written
from harebell.pipeline.spec.yaml_nodes import Node, unknown_keys
from harebell.spark.options.source_options import (
    SOURCE_NAMES,
    OptionError,
    for_stream,
    parse,
    problems_of,
)

_OWN = ("body", "watermark")
_LISTS = ("queues", "bindingkeys")
_OF_BODIES = ("bodyformat", "schema", "mode")
_BODY_KEYS = ("format", "schema", "objects", "onError", "deadLetter")
_ROUTE_KEYS = ("exchange", "routingKey", "queue")
_DELAY = re.compile(r"\d+(\.\d+)?\s+(milli|micro)?(second|minute|hour|day|week)s?", re.I)


def source_of(name: str, node: Node, complaints: Complaints) -> Source:
    """Check one source."""
    if not node.is_mapping:
        complaints.add(
            node.line, f"a source is a mapping such as {{queue: orders}}, not {node.kind}"
        )
        return Source(name, {})
    keys: dict[str, Node] = node.value
    options = {}
    for key, each in keys.items():
        if key in _OWN:
            continue
        # As JSON: a name may contain the comma that separates names in a text.
        if each.is_list and key.lower() in _LISTS:
            options[key] = json.dumps(list_of(each, key, complaints), ensure_ascii=False)
        elif key == "options" and each.is_mapping:
            complaints.add(
                each.line,
                f"a source has no key options: write {', '.join(each.value) or 'them'} beside "
                "queue, as keys of the source",
            )
        elif each.is_mapping or each.is_list or each.value is None:
            complaints.add(each.line, f"{key} must be a text or a number, not {each.kind}")
        else:
            options[key] = written(each.value)
    _check_options(node, options, complaints)
    if "body" in keys:
        for key in options:
            if key.lower() in _OF_BODIES:
                complaints.add(
                    node.keys[key],
                    f"{key} does not go with body, which says how bodies are read: leave {key} out",
                )
    return Source(
        name,
        # The case of their names does not matter, and other parts of a pipeline look for some.
        {SOURCE_NAMES.get(key.lower(), key): value for key, value in options.items()},
        _body(keys.get("body"), complaints),
        watermark_of(keys.get("watermark"), complaints),
    )


def _check_options(node: Node, options: dict[str, str], complaints: Complaints) -> None:
    problems = problems_of(options)
    for key, said in problems.items():
        complaints.add(node.keys[key], said)
    if problems:
        return
    try:
        for_stream(parse(options))
    except OptionError as error:
        # The error text contains the option's name, at any place.
        said = str(error)
        named = [key for key in options if re.search(rf"\b{re.escape(key)}\b", said)]
        line = node.keys[named[0]] if named else node.line
        complaints.add(line, said)


def _body(node: Node | None, complaints: Complaints) -> Body:
    if node is None:
        return Body()
    if not node.is_mapping:
        complaints.add(
            node.line,
            "body is a mapping such as {format: json, schema: 'id BIGINT'}, not " + node.kind,
        )
        return Body()
    unknown_keys(node, _BODY_KEYS, "body", complaints)
    keys: dict[str, Node] = node.value
    kind = text_of(keys.get("format"), "format", complaints) or FORMATS[0]
    if kind not in FORMATS:
        complaints.add(
            keys["format"].line, f"the format of bodies is one of {', '.join(FORMATS)}, not {kind}"
        )
    schema = _schema(keys.get("schema"), kind, node, complaints)
    objects = _objects(keys.get("objects"), kind, complaints)
    on_error = text_of(keys.get("onError"), "onError", complaints) or ON_ERROR[0]
    if on_error not in ON_ERROR:
        complaints.add(
            keys["onError"].line, f"onError is one of {', '.join(ON_ERROR)}, not {on_error}"
        )
    route = keys.get("deadLetter")
    if kind == "binary":
        for key in ("onError", "deadLetter"):
            if key in keys:
                complaints.add(
                    keys[key].line,
                    f"{key} does nothing with the format binary, whose bodies are never malformed: "
                    "leave it out, or say format: text or json",
                )
    elif (on_error == "dead-letter") != (route is not None):
        complaints.add(
            node.line,
            "onError: dead-letter and deadLetter: {exchange: ..., routingKey: ...} belong together",
        )
    dead_letter = None if route is None else route_of(route, "deadLetter", complaints)
    return Body(kind, schema, on_error, dead_letter, objects)


def _objects(node: Node | None, kind: str, complaints: Complaints) -> str:
    text = text_of(node, "objects", complaints) or ONE
    if node is not None and kind != "json":
        complaints.add(node.line, f"bodies of the format {kind} have no objects: leave it out")
    elif node is not None and text not in (ONE, MANY):
        complaints.add(node.line, f"objects is {ONE} or {MANY}, not {text}")
    return text


def _schema(node: Node | None, kind: str, body: Node, complaints: Complaints) -> str:
    if kind != "json":
        if node is not None:
            complaints.add(node.line, f"bodies of the format {kind} have no schema: leave it out")
        return ""
    text = text_of(node, "schema", complaints)
    if node is None or not text:
        complaints.add(
            body.line, "bodies of the format json need their schema: schema: 'id BIGINT, ...'"
        )
        return ""
    try:
        statements.columns(text)
    except statements.StatementError as error:
        complaints.add(node.text_line + error.line - 1, str(error))
    return " ".join(text.split())


def route_of(node: Node, what: str, complaints: Complaints) -> Route:
    """Check a route: an exchange, or a queue by the default exchange."""
    if not node.is_mapping:
        name = text_of(node, what, complaints) or ""
        return Route(name)
    unknown_keys(node, _ROUTE_KEYS, what, complaints)
    exchange = text_of(node.value.get("exchange"), "exchange", complaints)
    key = text_of(node.value.get("routingKey"), "routingKey", complaints)
    queue = text_of(node.value.get("queue"), "queue", complaints)
    if (exchange is None) == (queue is None) or (queue is not None and key is not None):
        complaints.add(
            node.line, f"{what} needs either exchange, with a routingKey if you like, or queue"
        )
    return Route("", queue) if queue is not None else Route(exchange or "", key)


def watermark_of(node: Node | None, complaints: Complaints) -> Watermark | None:
    """Check a watermark."""
    if node is None:
        return None
    right = "{column: time, delay: 10 minutes}"
    if not node.is_mapping:
        complaints.add(node.line, f"watermark is a mapping, {right}, not {node.kind}")
        return None
    unknown_keys(node, ("column", "delay"), "watermark", complaints)
    column = text_of(node.value.get("column"), "column", complaints)
    delay = text_of(node.value.get("delay"), "delay", complaints)
    if not column or not delay:
        complaints.add(node.line, f"watermark needs column and delay: {right}")
        return None
    if not _DELAY.fullmatch(delay.strip()):
        complaints.add(
            node.value["delay"].line,
            f"the delay {delay!r} is no time: write 10 minutes, 30 seconds, 2 hours",
        )
    return Watermark(column, delay)
