"""Check the sinks of a pipeline file: target, view, condition and options."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harebell.base.names import did_you_mean
from harebell.pipeline.errors import Complaints
from harebell.pipeline.sinks.exchange import EXPRESSION
from harebell.pipeline.sinks.iceberg_catalog import PROPERTY, placed, wrong_catalog, wrong_table
from harebell.pipeline.sinks.table_form import MODES
from harebell.pipeline.spec import statements
from harebell.pipeline.spec.description import Sink
from harebell.pipeline.spec.values import (
    directory_of,
    flag_of,
    list_of,
    quoted,
    text_of,
    texts_of,
    whole_of,
    written,
)
from harebell.pipeline.spec.yaml_nodes import Node, unknown_keys
from harebell.spark.options.sink_options import parse_sink, problems_of
from harebell.spark.options.values import OptionError

KINDS = ("exchange", "queue", "delta", "iceberg", "parquet", "console")
_COMMON = ("name", "from", "where")
_KEYS: dict[str, tuple[str, ...]] = {
    "exchange": ("routingKey", "url", "mandatory", "deadLetter", "delivery", "options"),
    "queue": ("url", "mandatory", "deadLetter", "delivery", "options"),
    "delta": ("partitionBy", "compactEvery", "mode", "mergeSchema"),
    "iceberg": (
        *("catalog", "warehouse", "catalogOptions"),
        *("partitionBy", "compactEvery", "mode", "mergeSchema"),
    ),
    "parquet": ("partitionBy", "compression"),
    "console": ("rows",),
}
_OWN = {
    "exchange": "is a kind of sink: - exchange: NAME",
    "queue": "is a kind of sink: - queue: NAME",
    "routingkey": "stands beside exchange, not in options",
    "txnappid": "is set by the pipeline, which counts its micro-batches itself",
    "txnversion": "is set by the pipeline, which counts its micro-batches itself",
}
_TRANSFORM = re.compile(r"\s*(?:year|month|day|hour|bucket|truncate)s?\s*\(.*\)\s*", re.I)
COMPRESSIONS = ("zstd", "snappy", "lz4", "gzip", "none")


def sink_of(
    node: Node, last: str, directory: Path, taken: Sequence[str], complaints: Complaints
) -> Sink | None:
    """Check one sink.

    Args:
        node: its values in the file.
        last: default of the view.
        directory: base of relative paths.
        taken: names of the sinks before it.
        complaints: gathers errors.
    """
    if not node.is_mapping:
        complaints.add(
            node.line, f"a sink is a mapping such as {{parquet: lake/orders}}, not {node.kind}"
        )
        return None
    keys: dict[str, Node] = node.value
    kinds = [key for key in KINDS if key in keys]
    if len(kinds) != 1:
        complaints.add(node.line, _which(kinds, keys))
        return None
    kind = kinds[0]
    unknown_keys(node, (kind, *_COMMON, *_KEYS[kind]), f"a sink of the kind {kind}", complaints)
    name = text_of(keys.get("name"), "name", complaints) or _free(kind, taken)
    if name in taken:
        complaints.add(keys["name"].line, f"there are two sinks of the name {name}")
    where = _condition(keys.get("where"), "a condition", complaints)
    source = text_of(keys.get("from"), "from", complaints) or last
    if kind == "console":
        target, options = "", _console(keys, complaints)
    elif kind == "parquet":
        target = str(directory_of(keys[kind], kind, directory, complaints))
        options = _files(keys, complaints)
    elif kind == "delta":
        target = str(directory_of(keys[kind], kind, directory, complaints))
        options = _table(keys, complaints)
    elif kind == "iceberg":
        target, options = _iceberg(keys, directory, complaints)
    else:
        target, options = _publishing(kind, keys, complaints)
        kind = "exchange"
    partitions = list_of(keys.get("partitionBy"), "partitionBy", complaints)
    for column in partitions:
        # Other engines of Iceberg write partitions this way, and rows have no such column.
        if kind == "iceberg" and _TRANSFORM.fullmatch(column):
            complaints.add(
                keys["partitionBy"].line,
                f"partitionBy has columns and no transforms such as {column}: make a column of it "
                "in a step",
            )
    return Sink(name, kind, source, target, where, options, partitions)


def _which(kinds: list[str], keys: dict[str, Node]) -> str:
    if kinds:
        return f"this is {' and '.join(kinds)} at once: make it {len(kinds)} sinks"
    others = [key for key in keys if key not in _COMMON]
    hint = did_you_mean(others[0], KINDS) if others else ", ".join(KINDS)
    return f"this sink has no kind: {hint}"


def _free(kind: str, taken: Sequence[str]) -> str:
    names = [kind, *(f"{kind}-{number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


def _condition(node: Node | None, what: str, complaints: Complaints) -> str:
    text = text_of(node, "where", complaints)
    if node is None or not text:
        return ""
    try:
        statements.condition(text, what)
    except statements.StatementError as error:
        complaints.add(node.text_line + error.line - 1, str(error))
    return text


def _console(keys: dict[str, Node], complaints: Complaints) -> dict[str, str]:
    node = keys["console"]
    if node.plain not in (None, "", {}):
        beside = node.value if node.is_mapping else ("rows",)
        complaints.add(
            node.line,
            f"console has no value, and {node.kind} would do nothing: write {', '.join(beside)} "
            "beside it, as in {console: , rows: 3}",
        )
    return {"rows": str(whole_of(keys.get("rows"), "rows", 20, 1, complaints))}


def _files(keys: dict[str, Node], complaints: Complaints) -> dict[str, str]:
    compression = text_of(keys.get("compression"), "compression", complaints) or COMPRESSIONS[0]
    if compression not in COMPRESSIONS:
        complaints.add(
            keys["compression"].line,
            f"there is no compression {compression!r}: {did_you_mean(compression, COMPRESSIONS)}",
        )
    return {"compression": compression}


def _table(keys: dict[str, Node], complaints: Complaints) -> dict[str, str]:
    """Check the keys that Delta and Iceberg have in common."""
    every = whole_of(keys.get("compactEvery"), "compactEvery", 0, 0, complaints)
    mode = text_of(keys.get("mode"), "mode", complaints) or MODES[0]
    if mode not in MODES:
        complaints.add(
            keys["mode"].line, f"there is no mode {mode!r} of a table: {did_you_mean(mode, MODES)}"
        )
    merge = flag_of(keys.get("mergeSchema"), "mergeSchema", False, complaints)
    return {"compactEvery": str(every), "mode": mode, "mergeSchema": written(merge)}


def _iceberg(
    keys: dict[str, Node], directory: Path, complaints: Complaints
) -> tuple[str, dict[str, str]]:
    """Check the name of an Iceberg table, and its catalog."""
    options = _table(keys, complaints)
    target = text_of(keys["iceberg"], "iceberg", complaints) or ""
    node = keys.get("catalog")
    if node is None:
        complaints.add(
            keys["iceberg"].line,
            "iceberg needs a catalog: sqlite:///lake/catalog.db, https://..., or a name of "
            ".pyiceberg.yaml",
        )
        return target, options
    catalog = text_of(node, "catalog", complaints) or ""
    if wrong := wrong_catalog(catalog):
        complaints.add(node.line, wrong)
    if wrong := wrong_table(target, catalog):
        complaints.add(keys["iceberg"].line, wrong)
    warehouse = text_of(keys.get("warehouse"), "warehouse", complaints) or ""
    options["catalog"], options["warehouse"] = placed(catalog, warehouse, directory)
    given = texts_of(keys.get("catalogOptions"), "catalogOptions", complaints)
    return target, options | {f"{PROPERTY}{name}": value for name, value in given.items()}


def _publishing(
    kind: str, keys: dict[str, Node], complaints: Complaints
) -> tuple[str, dict[str, str]]:
    """Check the exchange, and options of the format `harebell`."""
    target = text_of(keys[kind], kind, complaints) or ""
    options: dict[str, str] = {}
    if kind == "queue":
        options[EXPRESSION], target = quoted(target), ""
    elif "routingKey" in keys:
        options[EXPRESSION] = _condition(keys["routingKey"], "an expression", complaints)
    if "mandatory" in keys:
        options["mandatory"] = written(flag_of(keys["mandatory"], "mandatory", True, complaints))
    for key in ("url", "deadLetter", "delivery"):
        if key in keys and (value := text_of(keys[key], key, complaints)) is not None:
            options[key] = value
    extra = keys.get("options")
    if extra is not None and not extra.is_mapping:
        complaints.add(extra.line, f"options must be a mapping, not {extra.kind}")
    elif extra is not None:
        options |= {name: written(each.plain) for name, each in extra.value.items()}
    _check_options(target, options, keys, complaints)
    return target, options


def _check_options(
    target: str, options: dict[str, str], keys: dict[str, Node], complaints: Complaints
) -> None:
    """Check the options of a sink with the format's own parser."""
    extra = keys.get("options")
    lines = {name: node.line for name, node in keys.items()}
    if extra is not None and extra.is_mapping:
        lines |= extra.keys
        for name in extra.keys:
            if name.lower() in _OWN:
                complaints.add(extra.keys[name], f"{name} {_OWN[name.lower()]}")
                return
    first = next(iter(keys.values())).line
    given = {name: value for name, value in options.items() if name != EXPRESSION}
    # All wrong options at once; the parser, which also compares them, stops at the first.
    problems = problems_of(given)
    for name, said in problems.items():
        complaints.add(lines.get(name, first), said)
    if problems:
        return
    try:
        parse_sink({"exchange": target, **given})
    except OptionError as error:
        said = str(error)
        # The text of the error names the option, which tells its line.
        named = [key for key in given if re.search(rf"\b{re.escape(key)}\b", said)]
        complaints.add(lines.get(named[0], first) if named else first, said)
