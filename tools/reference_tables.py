"""Write the tables of the reference that are made from the code: `tools/reference_tables.py`.

    configuration.md   Keys      one row per key of harebell.config.settings
    metrics.md         Metrics   one row per metric of harebell.management.metrics
    http-api.md        Routes    one row per route of harebell.management.http.routes

Everything in a row comes from the code, but for the notes: what follows `<br>` in the second column
is written by hand in the page, and stays. A test compares the pages with what this would write.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from pathlib import Path

from harebell.admin.catalog import commands
from harebell.config import Config
from harebell.config.rabbitmq_keys import rabbitmq_names
from harebell.config.setting import Setting
from harebell.config.settings import SETTINGS
from harebell.management.http.routes import routes_of
from harebell.management.metrics import families
from harebell.management.metrics.merging import ANSWERED
from harebell.management.metrics.section import HAREBELL
from harebell.management.metrics.text import Metric

REFERENCE = Path(__file__).resolve().parent.parent / "docs" / "reference"
RECORD = REFERENCE.parent / "internals" / "record"
NOTE = "<br>"
_NAMES = re.compile(
    r"(?<![\w/.`])("
    + "|".join(
        sorted((s.name for s in SETTINGS if "_" in s.name), key=len, reverse=True),
    )
    + r")(?![\w/])"
)
_CHOICES = "must be one of "
_UNITS = {"_seconds": "seconds", "_bytes": "bytes"}


def _code(words: Iterable[str]) -> str:
    return ", ".join([f"`{word}`" for word in words])


def allowed(setting: Setting) -> str:
    """Which values a key takes: what its reader says of one that no key takes."""
    try:
        setting.read(object())
    except ValueError as error:
        said = str(error).partition("; there is no ")[0]
    else:
        raise AssertionError(f"the key {setting.name} takes everything")
    if said.startswith(_CHOICES):
        return _code(said.removeprefix(_CHOICES).split(", "))
    said = said.removeprefix("must be ")
    before, such_as, example = said.partition(" such as ")
    if such_as and re.fullmatch(r"[{$][^,()]*([,;].*)?", example) and "}, of" not in example:
        example, rest = re.fullmatch(r"(.*?)(; .*)?", example).groups()
        return f"{before} such as `{example}`{rest or ''}"
    return said.replace("*", "\\*")


def default(setting: Setting) -> str:
    """The default of a key as TOML writes it."""
    if setting.name == "data_dir":
        return "`$XDG_DATA_HOME/harebell`, or `~/.local/share/harebell`"
    value = getattr(Config(), setting.name)
    if isinstance(value, tuple):
        value = ",".join(value)
    if isinstance(value, bool):
        value = str(value).lower()
    return "none" if value in (None, "", {}) else f"`{value}`"


def meaning(setting: Setting) -> str:
    """The line of `--help` about a key, with names of keys as code."""
    said = _NAMES.sub(r"`\1`", setting.help)
    return re.sub(r"(?<!\S)(\*\S*|\$\w+|\{ .* \})(?=[\s,.;:])", r"`\1`", said)


def keys() -> Iterator[list[str]]:
    """The table of configuration keys."""
    yield ["key", "meaning", "values", "default", "reload", "`rabbitmq.conf`"]
    names = rabbitmq_names()
    for setting in SETTINGS:
        yield [
            f"`{setting.name}`",
            meaning(setting),
            allowed(setting),
            default(setting),
            "yes" if setting.reloads else "",
            _code(names.get(setting.name, ())),
        ]


def metrics() -> Iterator[list[str]]:
    """The table of metrics."""
    yield ["metric", "meaning", "type", "unit", "labels", "family"]
    for name, found in sorted(every_metric().items()):
        yield [
            f"`{name}`",
            found.metric.help,
            found.metric.kind,
            unit(name),
            " or ".join([_code(each) for each in found.labels if each]) or "-",
            _code(found.families) or "-",
        ]


def unit(name: str) -> str:
    """The unit of a metric, which its name ends with; "" for a number of things."""
    return next((u for end, u in _UNITS.items() if name.removesuffix("_total").endswith(end)), "")


class Described:
    """A metric with where it is.

    Args:
        metric: its name without a prefix, type and meaning.
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.families: list[str] = []
        self.labels: list[tuple[str, ...]] = []


def every_metric() -> dict[str, Described]:
    """Every metric by its name at `/metrics/per-object`."""
    metrics: dict[str, Described] = {}

    def add(prefix: str, of: tuple[Metric, ...], labels: tuple[str, ...], family: str = "") -> None:
        for metric in of:
            described = metrics.setdefault(prefix + metric.name, Described(metric))
            if family and family not in described.families:
                described.families.append(family)
            if labels not in described.labels:
                described.labels.append(labels)

    for section in (
        *families.IDENTITY,
        *(families.OF_THE_BROKER + families.PER_OBJECT),
        *(families.OF_THE_NODE + families.MEMORY_BREAKDOWN),
    ):
        add(section.prefix, section.metrics, section.labels)
    for family, sections in families.FAMILIES.items():
        for section in sections:
            add(section.prefix, section.metrics, section.labels, family)
    add(HAREBELL, (ANSWERED,), ("store",))
    return metrics


def routes() -> Iterator[list[str]]:
    """The table of routes."""
    yield ["method", "path", "tag", "what it does"]
    for route in sorted(routes_of(commands()), key=lambda route: (route.path, route.method)):
        yield [
            f"`{route.method}`",
            f"`{route.path}`",
            route.command.tag or "management",
            route.summary,
        ]


def _record(name: str) -> list[list[str]]:
    lines = (RECORD / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines[1:]]


def runs() -> Iterator[list[str]]:
    """The table of the long runs, a row for each harness."""
    yield ["harness", "runs", "last", "result of the last"]
    by_harness: dict[str, list[list[str]]] = {}
    for row in _record("runs"):
        by_harness.setdefault(re.split(r"[(,:]", row[1])[0].strip(), []).append(row)
    for harness, rows in sorted(by_harness.items(), key=lambda item: (-len(item[1]), item[0])):
        yield [harness, str(len(rows)), rows[-1][0], f"{rows[-1][2]}: {rows[-1][4]}"]


def faults() -> Iterator[list[str]]:
    """The table of the faults, a row for each part that had several."""
    yield ["part", "faults", "the last one"]
    by_part: dict[str, list[list[str]]] = {}
    for row in _record("faults"):
        by_part.setdefault(row[1], []).append(row)
    ordered = sorted(by_part.items(), key=lambda item: (-len(item[1]), item[0]))
    for part, rows in ordered:
        if len(rows) > 1:
            yield [part, str(len(rows)), rows[-1][0]]
    others = sum(len(rows) == 1 for _, rows in ordered)
    yield [
        "parts with one each",
        str(others),
        f"see record/faults.tsv, {len(_record('faults'))} in all",
    ]


TABLES = (
    ("configuration.md", "Keys", keys),
    ("metrics.md", "Metrics", metrics),
    ("http-api.md", "Routes", routes),
    ("../internals/track-record.md", "Runs", runs),
    ("../internals/track-record.md", "Faults", faults),
)
"""Page, section, and what makes its table."""


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _lines(table: Iterator[list[str]], before: list[str]) -> Iterator[str]:
    """The lines of a table, with the notes that its rows have had."""
    notes = {
        cells[0]: cells[1].partition(NOTE)[2] for cells in map(_cells, before) if NOTE in cells[1]
    }
    heading = next(table)
    yield f"| {' | '.join(heading)} |"
    yield "|---" * len(heading) + "|"
    for first, second, *others in table:
        note = notes.get(first)
        said = f"{second}{NOTE}{note}" if note else second
        yield " ".join(f"| {' | '.join([first, said, *others])} |".split())


def written(page: str) -> str:
    """The text of a page with its tables as the code has them now."""
    text = (REFERENCE / page).read_text(encoding="utf-8")
    for name, title, make in TABLES:
        if name != page:
            continue
        lines = text.split("\n")
        begin = lines.index(f"## {title}")
        first = next(n for n in range(begin, len(lines)) if lines[n].startswith("|"))
        last = next(n for n in range(first, len(lines)) if not lines[n].startswith("|"))
        lines[first:last] = _lines(make(), lines[first:last])
        text = "\n".join(lines)
    return text


def main(arguments: list[str]) -> None:
    """Write the pages, or print what is different in them."""
    if arguments not in ([], ["--check"]):
        sys.exit("harebell: usage: tools/reference_tables.py [--check]")
    different = False
    for page in dict.fromkeys(page for page, _, _ in TABLES):
        path = REFERENCE / page
        before, now = path.read_text(encoding="utf-8"), written(page)
        different |= before != now
        if arguments:
            print("\n".join(unified_diff(before.split("\n"), now.split("\n"), n=0, lineterm="")))
        else:
            path.write_text(now, encoding="utf-8")
    if arguments and different:
        sys.exit("harebell: the reference is not that of the code: run tools/reference_tables.py")


if __name__ == "__main__":
    main(sys.argv[1:])
