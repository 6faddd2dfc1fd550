"""The figures of the documentation: those of the last two days on which they were recorded.

    python -m bench --record      measure, keep the medians of today, and write the page
    python -m bench.page          write the page again

The data is `docs/reference/benchmarks.tsv`: day, broker, scenario, figure, value. The tables of
`docs/reference/benchmarks.md` and its picture are made from it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench.drawing import BROKERS, NAMES, Figures, draw
from bench.measure import Result
from bench.report import OTHERS, multiple, shown
from bench.scenarios import SCENARIOS

DOCS = Path(__file__).resolve().parent.parent / "docs"
DATA = DOCS / "reference" / "benchmarks.tsv"
PAGE = DOCS / "reference" / "benchmarks.md"
PICTURE = DOCS / "images" / "benchmarks.svg"
DAYS_KEPT = 2
_HEAD = "day\tbroker\tscenario\tfigure\tvalue"
_FIGURES = Result.__struct_fields__[2:]
_TABLES = re.compile(r"(?<=<!-- figures -->\n\n).*?(?=\n\n<!-- end of the figures -->)", re.DOTALL)

Values = dict[tuple[str, str, str], float]
"""Values of one day by the broker, the scenario and the figure."""


def recorded() -> dict[str, Values]:
    """Return what was recorded, by the day, the earliest first."""
    days: dict[str, Values] = {}
    for line in DATA.read_text().splitlines()[1:]:
        day, broker, scenario, figure, value = line.split("\t")
        days.setdefault(day, {})[broker, scenario, figure] = float(value)
    return dict(sorted(days.items()))


def record(results: Iterable[Result], day: str) -> None:
    """Keep the medians of a day, and forget all but the last one before it."""
    days = recorded()
    today = days.setdefault(day, {})
    for each in results:
        for figure in _FIGURES:
            value = getattr(each, figure)
            if value is not None:
                today[each.broker, each.scenario, figure] = float(f"{value:.4g}")
    lines = [
        "\t".join((day, *key, f"{value:g}"))
        for day in sorted(days)[-DAYS_KEPT:]
        for key, value in days[day].items()
    ]
    DATA.write_text("\n".join((_HEAD, *lines)) + "\n")


def figures_of_day(values: Values) -> Figures:
    """Return the microseconds per message of the scenarios that the picture shows."""
    figures: Figures = {}
    for name in SCENARIOS:
        for broker in BROKERS:
            value = values.get((broker, name, "us_per_message"))
            if value:
                figures.setdefault(name, {})[broker] = value
    return figures


def page_with(text: str, days: dict[str, Values]) -> str:
    """Return the page with the tables of the last day, and of the one before it."""
    (day, now), *before = reversed(days.items())
    tables = [f"Measured on {day}" + (f"; before: on {before[0][0]}." if before else ".")]
    then = before[0][1] if before else {}
    tables.append("\n".join(_loads(now, then)))
    tables.append("\n".join(_others(now, then)))
    return _TABLES.sub(lambda _: "\n\n".join(tables), text)


def _loads(now: Values, then: Values) -> Iterator[str]:
    heads = ["floor us/msg", *(f"{NAMES[broker]} us/msg" for broker in BROKERS)]
    heads += [f"{NAMES[broker]} x floor" for broker in BROKERS]
    heads += [f"{NAMES[broker]} msg/s" for broker in BROKERS]
    heads += [f"before: {NAMES[broker]} us/msg" for broker in BROKERS]
    yield "| scenario | " + " | ".join(heads) + " |"
    yield "|---" * (len(heads) + 1) + "|"
    for name in SCENARIOS:
        floor = now.get(("floor", name, "us_per_message"))
        costs = [now.get((broker, name, "us_per_message")) for broker in BROKERS]
        cells = [shown(floor, 3), *(shown(cost, 2) for cost in costs)]
        cells += [shown(multiple(cost, floor), 1) for cost in costs]
        cells += [shown(now.get((broker, name, "messages_per_second")), 0) for broker in BROKERS]
        cells += [shown(then.get((broker, name, "us_per_message")), 2) for broker in BROKERS]
        yield f"| {name} | " + " | ".join(cells) + " |"


def _others(now: Values, then: Values) -> Iterator[str]:
    heads = [*(NAMES[broker] for broker in BROKERS)]
    heads += [f"before: {head}" for head in heads]
    yield "| beside the loads | " + " | ".join(heads) + " |"
    yield "|---" * (len(heads) + 1) + "|"
    rows = [
        (name, *figure)
        for name, _, figures in OTHERS
        for figure in figures
        if figure[1] != "messages"
    ]
    rows += [("g5k", "p50 us", "p50_us", 0), ("g5k", "p99 us", "p99_us", 0)]
    for scenario, words, figure, places in rows:
        cells = [
            shown(values.get((broker, scenario, figure)), places)
            for values in (now, then)
            for broker in BROKERS
        ]
        yield f"| {scenario}: {words} | " + " | ".join(cells) + " |"


def write_page() -> None:
    """Write the tables and the picture of the documentation."""
    days = recorded()
    PAGE.write_text(page_with(PAGE.read_text(), days))
    PICTURE.write_text(draw(figures_of_day(list(days.values())[-1])))


if __name__ == "__main__":
    write_page()
