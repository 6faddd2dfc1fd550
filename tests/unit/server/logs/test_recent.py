"""The last lines of the log are kept in memory, a bounded number of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harebell.admin.limits import LOG_RECENT_LINES
from harebell.server.limits import LOG_RECENT_TEXT_CHARACTERS
from harebell.server.logs.formats import Line
from harebell.server.logs.recent import RecentLines
from tests.unit.management.http.asking import Api, running_api


def line(text: str, level: str = "info") -> Line:
    return Line(1_700_000_000_123_000_000, level, "default", 7, text)


def every(_level: str) -> bool:
    return True


def test_only_the_last_lines_are_kept_and_their_numbers_go_on() -> None:
    lines = RecentLines(str)
    for number in range(LOG_RECENT_LINES + 5):
        lines.add(line(str(number)))
    kept = lines.after(0, LOG_RECENT_LINES * 2, every)
    assert len(kept) == LOG_RECENT_LINES
    assert (kept[0]["number"], kept[0]["text"]) == (6, "5")
    assert [each["text"] for each in lines.after(kept[-2]["number"], 10, every)] == ["1004"]
    assert lines.after(kept[-1]["number"], 10, every) == []


def test_the_last_lines_of_a_level_are_found_and_a_long_one_is_cut() -> None:
    lines = RecentLines(lambda ms: f"at {ms}")
    lines.add(line("x" * 5_000, "error"))
    lines.add(line("y"))
    (found,) = lines.after(0, 10, lambda level: level == "error")
    assert len(found["text"]) == LOG_RECENT_TEXT_CHARACTERS + 1
    assert (found["time"], found["pid"], found["number"]) == ("at 1700000000123", "<0.7.0>", 1)
    assert [each["text"] for each in lines.after(0, 1, every)] == ["y"]


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with running_api() as found:
        yield found


def test_an_administrator_reads_the_log_over_http_from_a_line_on(api: Api) -> None:
    lines = api.get("/api/logs?limit=1000")
    assert any(each["text"].startswith("started TCP listener") for each in lines), lines
    last = lines[-1]["number"]
    api.done("PUT", "/api/queues/%2F/logged", {})
    later = api.get(f"/api/logs?after={last}")
    assert any("queue 'logged'" in each["text"] for each in later)
    assert api.get(f"/api/logs?after={later[-1]['number']}&level=error") == []
    for wrong, reason in (("level=loud", "it is one of debug"), ("limit=0", "from 1 to 1000")):
        answer = api.ask("GET", f"/api/logs?{wrong}")
        assert answer.status == 400
        assert reason in answer.json["reason"]
