"""The tables of docs/reference/permissions.md, as values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harebell.auth.permissions import ACTIONS
from harebell.front.amqp_1_0.management import requests
from harebell.wire.v010 import commands, controls
from harebell.wire.v010.composites import Command, Control
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL
from harebell.wire.v09.spec import ProtocolSpec
from harebell.wire.v1.tables import COMPOSITES

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "permissions.md"
FINAL = "0-10"
SPECS: dict[str, ProtocolSpec] = {
    "0-8": AMQP_0_8,
    "0-9": AMQP_0_9,
    "0-9-1": AMQP_0_9_1,
    "transitional 0-10": AMQP_0_10_TRANSITIONAL,
}
ONE = "1.0"
VERSIONS = (*SPECS, FINAL, ONE)
BROKERS_OWN = {
    *("connection.open-ok", "connection.redirect", "connection.secure", "connection.start"),
    *("connection.tune", "file.consume-ok", "file.deliver", "file.qos-ok", "file.return"),
    *("stream.consume-ok", "stream.deliver", "stream.qos-ok", "stream.return"),
}
"""Controls and commands of 0-10 that only the broker sends; the table there does not say it."""
_PERFORMATIVES = range(0x10, 0x19)
_OTHERS_OF_1_0 = {"sasl-init", "sasl-response", "declare", "discharge"}
"""What a client of 1.0 sends besides performatives and requests to the management node."""
NAMES = {
    "queue": ("queue", "q"),
    "new queue": ("queue", "new"),
    "exchange": ("exchange", "x"),
    "new exchange": ("exchange", "fresh"),
    "other exchange": ("exchange", "other"),
    "destination exchange": ("exchange", "y"),
    "default exchange": ("exchange", "amq.default"),
}


@dataclass(frozen=True)
class Need:
    """A permission.

    Args:
        action: configure, write, read; or any.
        kind: queue or exchange.
        name: of the resource.
        topic: whether a routing key is asked for, too.
    """

    action: str
    kind: str
    name: str
    topic: bool = False


@dataclass(frozen=True)
class Row:
    """An operation by one method in one version.

    Args:
        operation: what is done.
        method: by which method.
        version: in which version.
        needs: all that it asks for.
    """

    operation: str
    method: str
    version: str
    needs: tuple[Need, ...]

    def __str__(self) -> str:
        return f"{self.version}: {self.operation}: {self.method}"


def methods_of(version: str) -> set[str]:
    """Every method that a client may send; of 1.0 performatives, and requests to the broker."""
    if version == ONE:
        names = {spec.name for code, spec in COMPOSITES.items() if code in _PERFORMATIVES}
        return names | _OTHERS_OF_1_0 | set(requests_of_1_0())
    if version != FINAL:
        return {method.name for method in SPECS[version].methods if method.from_client}
    found = [value for module in (commands, controls) for value in vars(module).values()]
    kinds = [
        each for each in found if isinstance(each, type) and issubclass(each, Command | Control)
    ]
    return {each.NAME for each in kinds if each not in (Command, Control)} - BROKERS_OWN


def requests_of_1_0() -> Iterator[str]:
    """The requests that the management node knows, from the head of the file that serves them."""
    for method, path in re.findall(r"^    ([A-Z]+) +(/[^\s?]+)", requests.__doc__ or "", re.M):
        yield f"{method} {path.replace('src=S;...', 'B')}"


def _cells(page: str, columns: int) -> list[list[str]]:
    rows = [line[1:-1].split("|") for line in page.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row] for row in rows if len(row) == columns]
    return [row for row in cells if not set(row[0]) <= set("-: ")][1:]


def _needs(cell: str) -> tuple[Need, ...]:
    found = []
    for each in cell.split(", "):
        plain = each.removesuffix(" with its key")
        action, _, what = plain.partition(" ")
        found.append(Need(action, *NAMES[what], topic=plain != each))
    return tuple(found)


def rows() -> list[Row]:
    """The first table, a row for every method and version."""
    found = []
    for operation, methods, versions, needs in _cells(PAGE.read_text(), 4):
        for version in versions.split(", ") if versions else VERSIONS:
            assert version in VERSIONS, f"there is no version {version}: {operation}"
            for method in re.findall("`([^`]+)`", methods):
                if method not in methods_of(version):
                    continue
                if not versions and method.startswith("exchange.") and "bind" in method:
                    continue
                found.append(Row(operation, method, version, _needs(needs)))
    return found


def for_some_name() -> list[tuple[str, str, tuple[str, ...]]]:
    """Methods that need a permission for some name: with a version, and the permissions."""
    found: list[tuple[str, str, tuple[str, ...]]] = []
    for _, methods, allowed in _cells(PAGE.read_text(), 3):
        asked = re.search(r"\b(any|configure|write|read) for some name", allowed)
        if asked is None:
            continue
        actions = ACTIONS if asked[1] == "any" else (asked[1],)
        for method in re.findall("`([^`]+)`", methods):
            found += [
                (method, version, actions) for version in VERSIONS if method in methods_of(version)
            ]
    return found


def others() -> set[str]:
    """The methods of the other tables, which ask for no permission of a name."""
    text = PAGE.read_text().split("## What a refusal says")[0]
    tables = text.split("These are about", 1)[1]
    found = set(re.findall("`([a-z0-9-]+[.][a-z-]+)`", tables))
    (line,) = [line for line in tables.splitlines() if line.startswith("| AMQP 1.0 |")]
    return found | set(re.findall("`([^`]+)`", line))
