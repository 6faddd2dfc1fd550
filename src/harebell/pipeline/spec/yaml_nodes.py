"""Parse a pipeline file into nodes that have their line.

PyYAML's loader drops the position of a value. Here a file becomes a tree of `Node`. Every error
in it is added to `Complaints`, which raises all of them at once with their lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harebell.base.names import did_you_mean
from harebell.pipeline import limits
from harebell.pipeline.errors import Complaints, PipelineError

_VARIABLE = re.compile(r"\$(?:\$|\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})")


@dataclass(frozen=True)
class Node:
    """A value of a file.

    Args:
        line: where it begins.
        value: text, number, flag, None, a list of nodes, or nodes by key.
        keys: the lines of the keys of a mapping.
        text_line: where the text itself begins: the line after `|` or `>` of a block.
    """

    line: int
    value: Any
    keys: Mapping[str, int] = field(default_factory=dict)
    text_line: int = 0

    @property
    def is_mapping(self) -> bool:
        """Whether it is a mapping."""
        return isinstance(self.value, dict)

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return isinstance(self.value, list)

    @property
    def plain(self) -> Any:
        """The value without lines."""
        if isinstance(self.value, dict):
            return {key: node.plain for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain for node in self.value]
        return self.value

    @property
    def kind(self) -> str:
        """The type of the value, for errors."""
        if self.is_mapping:
            return "a mapping"
        if self.is_list:
            return "a list"
        if self.value is None:
            return "nothing"
        return repr(self.value)


def read(path: Path, variables: Mapping[str, str]) -> Node:
    """Parse a file.

    Args:
        path: the file.
        variables: values for `${NAME}`.

    Raises:
        PipelineError: it cannot be read.
        DescriptionError: it is not YAML, or it uses a variable that is not set.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise PipelineError(f"{path}: {error.strerror}") from None
    if len(text) > limits.PIPELINE_FILE_BYTES:
        raise PipelineError(
            f"{path} has {len(text)} bytes; a pipeline has at most {limits.PIPELINE_FILE_BYTES}"
        )
    return parse(text, str(path), variables)


def parse(text: bytes | str, name: str, variables: Mapping[str, str]) -> Node:
    """Parse the text of a file.

    Args:
        text: one document of YAML.
        name: name of the file, for errors.
        variables: values for `${NAME}`.

    Raises:
        DescriptionError: it is not YAML, or it uses a variable that is not set.
    """
    try:
        import yaml
    except ImportError:
        raise PipelineError(
            "pipelines need PyYAML and Spark: pip install 'harebell[spark]'"
        ) from None

    complaints = Complaints(name)
    try:
        # `load` would drop the lines, and keep only the last of two equal keys.
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        complaints.add(line, f"this is no YAML: {error.problem}{_quotes(text, line)}")
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        complaints.add(1, f"this is no YAML: {' '.join(str(error).split())}")
    except RecursionError:
        complaints.add(1, f"there are more than {limits.PIPELINE_DEPTH} values within each other")
    complaints.settle()
    if root is None:
        complaints.add(1, "the file is empty; a pipeline has at least a source and sinks")
        complaints.settle()
    node = _Converter(complaints, variables).convert(root, 0)
    complaints.settle()
    return node


def _quotes(text: bytes | str, line: int) -> str:
    """Return a hint if the braces of a variable were parsed as a YAML mapping."""
    lines = (text if isinstance(text, str) else text.decode(errors="replace")).splitlines()
    inside = line <= len(lines) and "${" in lines[line - 1]
    return '; within {...} and [...] a variable needs quotes: "${NAME}"' if inside else ""


class _Converter:
    """Convert PyYAML's nodes to `Node`."""

    def __init__(self, complaints: Complaints, variables: Mapping[str, str]) -> None:
        import yaml

        self._complaints = complaints
        self._variables = variables
        self._loader: Any = yaml.SafeLoader("")
        self._yaml_error = yaml.YAMLError
        self._remaining = limits.PIPELINE_NODES

    def convert(self, node: Any, depth: int) -> Node:
        """Convert one value, recursively."""
        line = node.start_mark.line + 1
        self._remaining -= 1
        if self._remaining < 0 or depth > limits.PIPELINE_DEPTH:
            # Anchors that contain each other could expand a short file without limit.
            self._complaints.add(
                line,
                f"the file has more than {limits.PIPELINE_NODES} values, or more than "
                f"{limits.PIPELINE_DEPTH} within each other",
            )
            self._complaints.settle()
        if node.id == "mapping":
            return self._mapping(node, line, depth)
        if node.id == "sequence":
            return Node(line, [self.convert(each, depth + 1) for each in node.value])
        return self._scalar(node, line)

    def _mapping(self, node: Any, line: int, depth: int) -> Node:
        values: dict[str, Node] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            name, key_line = str(key.value), key.start_mark.line + 1
            if name in values:
                self._complaints.add(
                    key_line,
                    f"the key {name} stands here twice; the first is in line {lines[name]}",
                )
            lines[name] = key_line
            values[name] = self.convert(value, depth + 1)
        return Node(line, values, lines)

    def _scalar(self, node: Any, line: int) -> Node:
        block = node.style in ("|", ">")
        text_line = line + 1 if block else line
        value = node.value
        if "$" in value:
            value = _VARIABLE.sub(lambda match: self._substitute(match, line), value)
            if value != node.value and not node.style:
                # A variable may have inserted a number, so the type of the text is resolved again.
                tag = self._loader.resolve(type(node), value, (True, False))
                node = type(node)(tag, value, node.start_mark, node.end_mark, node.style)
        # A date stays the text that was written: Python's would be written differently to Spark.
        if node.tag == "tag:yaml.org,2002:str" or node.tag.endswith(":timestamp"):
            return Node(line, value, text_line=text_line)
        try:
            return Node(line, self._loader.construct_object(node, deep=True), text_line=text_line)
        except (ValueError, TypeError, KeyError, OverflowError, self._yaml_error) as error:
            self._complaints.add(line, f"{value!r} is not what its tag says: {error}")
            return Node(line, None)

    def _substitute(self, match: re.Match[str], line: int) -> str:
        name, default = match[1], match[2]
        if name is None:
            return "$"
        value = self._variables.get(name, default)
        if value is None:
            self._complaints.add(
                line,
                f"the variable {name} is not set: set it in the environment, with "
                f"--set {name}=..., or give it a default, ${{{name}:-...}}",
            )
            return ""
        return value


def unknown_keys(node: Node, known: tuple[str, ...], where: str, complaints: Complaints) -> None:
    """Add an error for each unknown key of a mapping."""
    for key, line in node.keys.items():
        if key not in known:
            complaints.add(line, f"unknown key {key!r} in {where}: {did_you_mean(key, known)}")
