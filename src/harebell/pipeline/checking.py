"""Check a pipeline file: return its `Description`, or raise all errors in it.

Nothing here starts Spark or connects to a broker, so `harebell pipeline check` is fast, and an
invalid file is reported before anything is read from a queue.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from harebell.base.names import did_you_mean
from harebell.pipeline.errors import Complaints
from harebell.pipeline.spec import statements
from harebell.pipeline.spec.check_columns import ColumnCheck
from harebell.pipeline.spec.check_sinks import sink_of
from harebell.pipeline.spec.check_sources import source_of, watermark_of
from harebell.pipeline.spec.description import (
    MODES,
    SOURCE,
    Description,
    Sink,
    Source,
    Step,
    Trigger,
)
from harebell.pipeline.spec.values import directory_of, seconds_of, text_of, texts_of
from harebell.pipeline.spec.yaml_nodes import Node, read, unknown_keys
from harebell.spark.runtime.java import SessionError
from harebell.spark.runtime.masters import master_of

_KEYS = (
    *("pipeline", "source", "sources", "steps", "sinks", "trigger", "checkpoint", "mode"),
    *("spark", "master", "report"),
)
_STEP_KEYS = ("name", "sql", "python", "from", "watermark")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def check(path: Path, variables: Mapping[str, str] | None = None) -> Description:
    """Parse and check a file.

    Args:
        path: the file.
        variables: values for `${NAME}`, in addition to the environment.

    Raises:
        PipelineError: it cannot be read.
        DescriptionError: all errors of the file, each with its line.
    """
    root = read(path, {**os.environ, **(variables or {})})
    return understand(root, path)


def understand(root: Node, path: Path) -> Description:
    """Return the pipeline for the values of a file.

    Raises:
        DescriptionError: all errors of the file.
    """
    complaints = Complaints(str(path))
    if not root.is_mapping:
        complaints.add(root.line, f"a pipeline is a mapping with {', '.join(_KEYS[:3])} and so on")
        # Raised here: without a mapping there is nothing that could be checked further.
        complaints.settle()
    description = _Reader(root, path, complaints).description()
    complaints.settle()
    return description


class _Reader:
    """Read a file once, and gather its errors."""

    def __init__(self, root: Node, path: Path, complaints: Complaints) -> None:
        self._root = root
        self._keys: dict[str, Node] = root.value
        self._path = path
        self._directory = path.resolve().parent
        self._complaints = complaints
        self._views: dict[str, int] = {}
        self._columns = ColumnCheck(complaints)

    def description(self) -> Description:
        """Return the description."""
        unknown_keys(self._root, _KEYS, "the pipeline", self._complaints)
        name = self._name()
        sources = self._sources()
        steps = self._steps()
        sinks = self._sinks(steps)
        settings = self._settings()
        description = Description(
            name=name,
            file=self._path,
            directory=self._directory,
            sources=sources,
            steps=steps,
            sinks=sinks,
            trigger=self._trigger(),
            checkpoint=self._checkpoint(name),
            mode=self._mode(),
            settings=settings,
            master=self._master(),
            report=self._report(),
        )
        self._together(description)
        return description

    def _name(self) -> str:
        node = self._keys.get("pipeline")
        if node is None:
            return self._path.stem
        name = text_of(node, "pipeline", self._complaints) or ""
        if not _NAME.fullmatch(name):
            self._complaints.add(
                node.line,
                f"the name {name!r} cannot be used: letters, digits, dots, dashes and underscores, "
                "at most 100",
            )
        return name

    def _sources(self) -> tuple[Source, ...]:
        one, many = self._keys.get("source"), self._keys.get("sources")
        if (one is None) == (many is None):
            line = self._root.line if many is None else self._root.keys["sources"]
            self._complaints.add(
                line,
                "a pipeline needs either source or sources: source: {queue: orders}, or "
                "sources: {orders: {queue: orders}, customers: {queue: customers}}",
            )
            return ()
        if one is not None:
            self._views[SOURCE] = one.line
            return (self._source(SOURCE, one),)
        assert many is not None
        if not many.is_mapping or not many.value:
            self._complaints.add(
                many.line, f"sources must be a mapping of names to sources, not {many.kind}"
            )
            return ()
        for name in many.value:
            self._new_view(name, many.keys[name])
        return tuple(self._source(name, node) for name, node in many.value.items())

    def _source(self, name: str, node: Node) -> Source:
        source = source_of(name, node, self._complaints)
        self._columns.add_source(source, node)
        return source

    def _new_view(self, name: str, line: int) -> None:
        if not _VIEW.fullmatch(name):
            self._complaints.add(
                line, f"the name {name!r} cannot be used in SQL: letters, digits and underscores"
            )
        # Spark ignores the case of a view's name.
        lines = {view.lower(): view_line for view, view_line in self._views.items()}
        if name.lower() in lines:
            self._complaints.add(
                line,
                f"the name {name} is taken: see line {lines[name.lower()]}; choose another one",
            )
        # Also a name that was refused: the steps that read the view would be called wrong as well.
        self._views.setdefault(name, line)

    def _steps(self) -> tuple[Step, ...]:
        node = self._keys.get("steps")
        if node is None:
            return ()
        if not node.is_list:
            self._complaints.add(node.line, f"steps must be a list, not {node.kind}")
            return ()
        steps = []
        for number, each in enumerate(node.value, start=1):
            step = self._step(each, number)
            if step is not None:
                steps.append(step)
        return tuple(steps)

    def _step(self, node: Node, number: int) -> Step | None:
        complaints = self._complaints
        if not node.is_mapping:
            complaints.add(node.line, f"a step is {{sql: ...}} or {{python: ...}}, not {node.kind}")
            return None
        unknown_keys(node, _STEP_KEYS, "a step", complaints)
        keys: dict[str, Node] = node.value
        name = text_of(keys.get("name"), "name", complaints) or f"step{number}"
        before = list(self._views)
        if ("sql" in keys) == ("python" in keys):
            complaints.add(node.line, "a step needs either sql or python")
            self._new_view(name, node.line)
            # Later steps may read this view: that it has unknown columns is no error of theirs.
            self._columns.add_query(name, None, node)
            return None
        watermark = watermark_of(keys.get("watermark"), complaints)
        previous = before[-1] if before else SOURCE
        if "python" in keys:
            source = text_of(keys.get("from"), "from", complaints) or previous
            line = keys["from"].line if "from" in keys else node.line
            self._check_view(source, before, line)
            step = Step(name, python=self._function(keys["python"]), source=source)
            self._columns.add_function(name)
        else:
            if "from" in keys:
                complaints.add(
                    node.keys["from"], "a step with sql names its views in the SQL: leave out from"
                )
            step = self._query(name, keys["sql"], before)
        self._columns.check_watermark(name, watermark, keys.get("watermark"))
        self._new_view(name, keys["name"].line if "name" in keys else node.line)
        return Step(step.name, step.sql, step.python, step.source, watermark, step.stateful)

    def _query(self, name: str, node: Node, before: list[str]) -> Step:
        sql = text_of(node, "sql", self._complaints) or ""
        query = self._parsed(sql, node) if sql else None
        self._columns.add_query(name, query, node)
        # The error is reported. The step is kept, so that the rest of the file is checked too.
        if query is None:
            return Step(name, sql)
        if not query.tables:
            self._complaints.add(node.line, f"this reads no view; there are {', '.join(before)}")
        if query.limited:
            self._complaints.add(node.text_line, statements.LIMITED)
        for table in query.tables:
            self._check_view(table, before, _line_of(table, sql, node))
        return Step(name, sql, stateful=bool(query.stateful))

    def _parsed(self, sql: str, node: Node) -> statements.ParsedQuery | None:
        try:
            return statements.query(sql)
        except statements.StatementError as error:
            self._complaints.add(node.text_line + error.line - 1, str(error))
            return None

    def _check_view(self, view: str, before: list[str], line: int) -> None:
        # Without any view the error is in the source, and is reported already.
        if before and view.lower() not in {each.lower() for each in before}:
            self._complaints.add(
                line, f"there is no view {view!r} before this step: {did_you_mean(view, before)}"
            )

    def _function(self, node: Node) -> str:
        text = text_of(node, "python", self._complaints) or ""
        if not _FUNCTION.fullmatch(text):
            self._complaints.add(
                node.line,
                f"{text!r} names no function: write module:function; the module is looked for "
                "beside this file first",
            )
        elif not _importable(text.partition(":")[0], self._directory):
            module = text.partition(":")[0]
            self._complaints.add(
                node.line,
                f"there is no module {module!r}, neither beside this file nor installed",
            )
        return text

    def _sinks(self, steps: tuple[Step, ...]) -> tuple[Sink, ...]:
        node = self._keys.get("sinks")
        if node is None or not node.is_list or not node.value:
            line = self._root.line if node is None else node.line
            self._complaints.add(line, "a pipeline needs sinks: a list with at least one of them")
            return ()
        # What a sink without `from` writes.
        last = steps[-1].name if steps else next(iter(self._views), SOURCE)
        sinks: dict[str, Sink] = {}
        for each in node.value:
            sink = sink_of(each, last, self._directory, list(sinks), self._complaints)
            if sink is None:
                continue
            line = each.value["from"].line if "from" in each.value else each.line
            self._check_sink_view(sink, line)
            self._apart(sink, sinks, each.line)
            self._columns.check_sink(sink, each.value)
            sinks[sink.name] = sink
        return tuple(sinks.values())

    def _apart(self, sink: Sink, others: Mapping[str, Sink], line: int) -> None:
        """Check that no directory gets Parquet files and a Delta table."""
        files = {"delta", "parquet"}
        for other in others.values():
            if {sink.kind, other.kind} == files and sink.target == other.target:
                self._complaints.add(
                    line,
                    f"the sinks {other.name} and {sink.name} write a Delta table and other Parquet "
                    f"files to {sink.target}: give each a directory",
                )

    def _check_sink_view(self, sink: Sink, line: int) -> None:
        if sink.source not in self._views:
            self._complaints.add(
                line, f"there is no view {sink.source!r}: {did_you_mean(sink.source, self._views)}"
            )

    def _trigger(self) -> Trigger:
        node = self._keys.get("trigger")
        if node is None:
            return Trigger()
        text = str(node.plain)
        if text in ("now", "asap"):
            return Trigger(text)
        seconds = seconds_of(text)
        if seconds is None:
            self._complaints.add(
                node.line,
                f"the trigger {text!r} is wrong: now (what is there, then it ends), asap, or a "
                "time between micro-batches such as 5s, 2m, 1h",
            )
            return Trigger()
        return Trigger("every", seconds)

    def _checkpoint(self, name: str) -> Path:
        node = self._keys.get("checkpoint")
        if node is None:
            return self._directory / "checkpoints" / name
        return directory_of(node, "checkpoint", self._directory, self._complaints)

    def _mode(self) -> str:
        node = self._keys.get("mode")
        if node is None:
            return MODES[0]
        if node.plain not in MODES:
            self._complaints.add(
                node.line, f"the mode is one of {', '.join(MODES)}, not {node.kind}"
            )
        return str(node.plain)

    def _report(self) -> bool:
        node = self._keys.get("report")
        if node is None or node.plain is True:
            return True
        if node.plain is not False:
            self._complaints.add(node.line, f"report is true or false, not {node.kind}")
        return False

    def _master(self) -> str:
        node = self._keys.get("master")
        text = text_of(node, "master", self._complaints) or ""
        if node is not None and text:
            try:
                master_of(text)
            except SessionError as error:
                self._complaints.add(node.line, str(error))
        return text

    def _settings(self) -> dict[str, str]:
        node = self._keys.get("spark")
        settings = texts_of(node, "spark", self._complaints)
        for key in settings:
            if not key.startswith("spark."):
                assert node is not None
                self._complaints.add(
                    node.keys[key],
                    f"{key!r} is no setting of Spark: they begin with spark., as in "
                    "spark.sql.shuffle.partitions: 4",
                )
        return settings

    def _together(self, description: Description) -> None:
        """Check values that depend on each other."""
        # What a function in Python does with its rows cannot be seen here.
        if not description.stateful and not any(step.python for step in description.steps):
            self._without_state(description)
        stateful = [step for step in description.steps if step.stateful]
        rules: tuple[tuple[bool, str], ...] = (
            (
                description.per_batch and bool(stateful),
                "which needs the whole stream, but the steps of this pipeline run on one "
                "micro-batch at a time, because "
                + (
                    "bad rows go to a dead-letter exchange: use onError: drop, or fail"
                    if description.sorts_bad_rows
                    else "its sinks take different views: make it two pipelines, or give the "
                    "sinks one view and a where each"
                ),
            ),
            (
                description.per_batch and len(description.sources) > 1,
                "and more than one source can only be read as streams: make it two pipelines, "
                "or give the sinks one view and a where each",
            ),
        )
        for wrong, why in rules:
            if wrong:
                step = stateful[0].name if stateful else description.sources[-1].name
                line = self._views.get(step, self._root.line)
                self._complaints.add(
                    line, f"{step} aggregates or joins, {why}" if stateful else why
                )
                break

    def _without_state(self, description: Description) -> None:
        """Report what is only about state, which no step keeps."""
        if description.mode != MODES[0] and "mode" in self._keys:
            self._complaints.add(
                self._keys["mode"].line,
                f"mode: {description.mode} is for steps that aggregate, and none does: "
                "leave it out",
            )
        views = [self._keys.get("source"), self._keys.get("sources"), self._keys.get("steps")]
        for node in views:
            for each in _mappings(node):
                if "watermark" in each.value:
                    self._complaints.add(
                        each.keys["watermark"],
                        "a watermark is for steps that aggregate or join, and none does: leave it "
                        "out",
                    )


def _mappings(node: Node | None) -> Iterator[Node]:
    """Yield a mapping, and those in it."""
    if node is None:
        return
    if node.is_mapping:
        yield node
    inner = node.value.values() if node.is_mapping else node.value if node.is_list else ()
    for each in inner:
        if each.is_mapping:
            yield each


def _importable(module: str, directory: Path) -> bool:
    from importlib.machinery import PathFinder
    from importlib.util import find_spec

    first = module.partition(".")[0]
    # Not imported: a module may do anything when it is.
    return PathFinder.find_spec(first, [str(directory)]) is not None or find_spec(first) is not None


def _line_of(word: str, sql: str, node: Node) -> int:
    """Return the line on which some SQL names a view."""
    pattern = re.compile(rf"\b{re.escape(word)}\b")
    numbers = (n for n, line in enumerate(sql.splitlines()) if pattern.search(line))
    return node.text_line + next(numbers, 0)
