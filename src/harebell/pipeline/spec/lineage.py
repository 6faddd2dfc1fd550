"""`harebell pipeline explain --svg`: draw a pipeline, from its sources through its steps to sinks.

    queue orders ──> source ──> step1 ──> exchange big
                            └─> step2 ──> Delta lake/orders

Nodes stand in columns, by the longest way from a source. Python's XML writer escapes all names;
characters that XML cannot have are written as their escapes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

from harebell.base.printable import printable
from harebell.pipeline.spec import statements
from harebell.pipeline.spec.description import Description, Sink, Step

_WIDTH, _HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 240, 56, 60, 24, 24
_TITLE = 40
_LETTERS = 36
"""Letters of a line that fit into a node."""
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#1f2430}.kind{fill:#5b6472;font-size:11px}"
    ".title{font-size:16px;font-weight:600}"
    "rect{fill:#f6f8fa;stroke:#8b95a5}.source rect{fill:#e8f1fd}.sink rect{fill:#e9f7ec}"
    "path{fill:none;stroke:#8b95a5}marker path{fill:#8b95a5}"
)


@dataclass(frozen=True)
class Node:
    """A source, step or sink in the drawing.

    Args:
        kind: source, step or sink.
        name: the view, or the sink's name.
        what: what it reads, does or writes.
        inputs: the names of the views that it reads.
    """

    kind: str
    name: str
    what: str
    inputs: tuple[str, ...] = ()


def nodes(pipeline: Description) -> list[Node]:
    """Return the nodes of a pipeline, in the order of its file."""
    nodes = [Node("source", each.name, each.what) for each in pipeline.sources]
    for step in pipeline.steps:
        what = f"calls {step.python}" if step.python else " ".join(step.sql.split())
        nodes.append(Node("step", step.name, what, _inputs(step)))
    nodes += [Node("sink", each.name, _target(each), (each.source,)) for each in pipeline.sinks]
    return nodes


def _inputs(step: Step) -> tuple[str, ...]:
    return (step.source,) if step.python else statements.query(step.sql).tables


def _target(sink: Sink) -> str:
    if sink.queue:
        return f"queue {sink.queue}"
    if sink.kind == "exchange":
        return f"exchange {sink.target}" if sink.target else "the default exchange"
    return f"{sink.kind} {sink.target}".strip()


def drawing(pipeline: Description) -> str:
    """Return the drawing as the text of an SVG file."""
    drawn = nodes(pipeline)
    places = _places(drawn)
    width = max(x for x, _ in places) + _WIDTH + _MARGIN
    height = max(y for _, y in places) + _HEIGHT + _MARGIN
    root = ElementTree.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {width} {height}",
            "width": str(width),
            "height": str(height),
            "role": "img",
        },
    )
    ElementTree.SubElement(root, "title").text = _text(f"pipeline {pipeline.name}")
    ElementTree.SubElement(root, "style").text = _STYLE
    _arrow(root)
    _write(root, (_MARGIN, _MARGIN + 8), pipeline.name, "title", 80)
    views = {
        node.name.lower(): place
        for node, place in zip(drawn, places, strict=True)
        if node.kind != "sink"
    }
    for node, place in zip(drawn, places, strict=True):
        for name in node.inputs:
            if name.lower() in views:
                _edge(root, views[name.lower()], place)
    for node, place in zip(drawn, places, strict=True):
        _node(root, node, place)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _places(nodes: list[Node]) -> list[tuple[int, int]]:
    """Return the upper left corner of each node."""
    depths: dict[str, int] = {}
    columns: list[int] = []
    for node in nodes:
        depth = 1 + max((depths.get(name.lower(), -1) for name in node.inputs), default=-1)
        columns.append(depth)
        if node.kind != "sink":
            depths[node.name.lower()] = depth
    # Sinks stand below each other at the right edge, wherever their view is made.
    last = max(columns)
    columns = [
        last if node.kind == "sink" else column for node, column in zip(nodes, columns, strict=True)
    ]
    return list(_stacked(columns))


def _stacked(columns: list[int]) -> Iterator[tuple[int, int]]:
    rows: dict[int, int] = {}
    for column in columns:
        row = rows.get(column, 0)
        rows[column] = row + 1
        yield (
            _MARGIN + column * (_WIDTH + _GAP_X),
            _MARGIN + _TITLE + row * (_HEIGHT + _GAP_Y),
        )


def _arrow(root: ElementTree.Element) -> None:
    marker = ElementTree.SubElement(
        ElementTree.SubElement(root, "defs"),
        "marker",
        {"id": "arrow", "viewBox": "0 0 8 8", "refX": "8", "refY": "4"}
        | {"markerWidth": "8", "markerHeight": "8", "orient": "auto"},
    )
    ElementTree.SubElement(marker, "path", {"d": "M0 0L8 4L0 8z"})


def _edge(root: ElementTree.Element, begin: tuple[int, int], end: tuple[int, int]) -> None:
    x1, y1 = begin[0] + _WIDTH, begin[1] + _HEIGHT // 2
    x2, y2 = end[0], end[1] + _HEIGHT // 2
    middle = (x1 + x2) // 2
    line = f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
    ElementTree.SubElement(root, "path", {"d": line, "marker-end": "url(#arrow)"})


def _node(root: ElementTree.Element, node: Node, place: tuple[int, int]) -> None:
    group = ElementTree.SubElement(root, "g", {"class": node.kind})
    # A tooltip with all of it, where the line is cut.
    ElementTree.SubElement(group, "title").text = _text(f"{node.name}: {node.what}")
    x, y = place
    size = {"width": str(_WIDTH), "height": str(_HEIGHT), "rx": "6"}
    ElementTree.SubElement(group, "rect", {"x": str(x), "y": str(y)} | size)
    _write(group, (x + 10, y + 22), node.name, "name", _LETTERS)
    _write(group, (x + 10, y + 42), node.what, "kind", _LETTERS)


def _write(
    parent: ElementTree.Element, place: tuple[int, int], text: str, kind: str, limit: int
) -> None:
    shown = _text(text)
    shown = shown if _letters(shown) <= limit else f"{_begin(shown, limit - 1)}…"
    where = {"x": str(place[0]), "y": str(place[1]), "class": kind}
    ElementTree.SubElement(parent, "text", where).text = shown


def _letters(text: str) -> int:
    """Return the width of a text: letters of Chinese, Japanese and Korean are twice as wide."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def _begin(text: str, limit: int) -> str:
    text = text[:limit]
    while _letters(text) > limit:
        text = text[:-1]
    return text


def _text(text: str) -> str:
    """Return a text with escapes for what XML 1.0 cannot have."""
    return printable(text).encode("utf-8", "backslashreplace").decode()
