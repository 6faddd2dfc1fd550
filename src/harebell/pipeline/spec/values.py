"""Parse simple values of a pipeline file: texts, times, paths, each with its error."""

from __future__ import annotations

import re
from pathlib import Path

from harebell.pipeline.errors import Complaints
from harebell.pipeline.spec.yaml_nodes import Node

_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d|seconds?|minutes?|hours?|days?)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}


def text_of(node: Node | None, key: str, complaints: Complaints) -> str | None:
    """Parse a text; None if it is missing."""
    if node is None:
        return None
    if node.is_mapping or node.is_list or node.value is None:
        complaints.add(node.line, f"{key} must be a text, not {node.kind}")
        return None
    return written(node.value)


def written(value: object) -> str:
    """Format a value as an option of Spark."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def list_of(node: Node | None, key: str, complaints: Complaints) -> tuple[str, ...]:
    """Parse a list of texts, or one text."""
    if node is None:
        return ()
    if not node.is_list:
        one = text_of(node, key, complaints)
        return (one,) if one else ()
    items = (text_of(each, key, complaints) for each in node.value)
    return tuple(each for each in items if each)


def texts_of(node: Node | None, key: str, complaints: Complaints) -> dict[str, str]:
    """Parse a mapping of texts."""
    if node is None:
        return {}
    if not node.is_mapping:
        complaints.add(node.line, f"{key} must be a mapping, not {node.kind}")
        return {}
    values: dict[str, Node] = node.value
    texts = {name: text_of(each, name, complaints) for name, each in values.items()}
    return {name: value for name, value in texts.items() if value is not None}


def flag_of(node: Node | None, key: str, default: bool, complaints: Complaints) -> bool:
    """Parse true or false."""
    if node is None:
        return default
    if not isinstance(node.value, bool):
        complaints.add(node.line, f"{key} must be true or false, not {node.kind}")
        return default
    return node.value


def whole_of(
    node: Node | None, key: str, default: int, minimum: int, complaints: Complaints
) -> int:
    """Parse a whole number."""
    if node is None:
        return default
    value = node.value
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        complaints.add(
            node.line, f"{key} must be a whole number of at least {minimum}, not {node.kind}"
        )
        return default
    return value


def seconds_of(text: str) -> float | None:
    """Parse a time such as 5s; None if it is invalid or not above 0."""
    match = _TIME.fullmatch(text.strip().lower())
    if match is None:
        return None
    unit = match[2] if match[2] in _SECONDS else match[2][0]
    seconds = float(match[1]) * _SECONDS[unit]
    return seconds if seconds > 0 else None


def directory_of(node: Node, key: str, base: Path, complaints: Complaints) -> Path:
    """Parse a path, relative to the directory of the file."""
    text = text_of(node, key, complaints) or ""
    if not text:
        complaints.add(node.line, f"{key} must be a path")
    elif "://" in text and not text.startswith("file://"):
        complaints.add(
            node.line,
            f"{key} must be a path that this machine sees, not {text}: the pipeline keeps its "
            "lock there",
        )
    return base / Path(text.removeprefix("file://")).expanduser()


def interval_of(seconds: float) -> str:
    """Format a time as a Spark interval of at least one millisecond."""
    return f"{max(1, round(seconds * 1000))} milliseconds"


def quoted(text: str) -> str:
    """Return a text as an SQL literal."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def named(queue: str) -> str:
    """Return a queue's name as a part of the names of a pipeline and its directory."""
    return "".join(each if each.isalnum() or each in "._-" else "_" for each in queue)[:80]
