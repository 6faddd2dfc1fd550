"""What `harebell top` shows of two samples."""

from __future__ import annotations

import pytest

from harebell.cli.top_view import (
    CONNECTIONS,
    Row,
    Sample,
    View,
    age,
    amount,
    as_json,
    lines,
    rows_of,
    size_text,
)

OVERVIEW: Row = {
    "node": "harebell@here",
    "uptime_seconds": 90.0,
    "connections": 2,
    "channels": 3,
    "queues": 2,
    "consumers": 1,
    "memory_used_bytes": 2048,
    "memory_alarm": False,
    "disk_free_bytes": 10**9,
    "shortages": [],
}


def queue(name: str, ready: int = 0, published: int = 0, **more: object) -> Row:
    return {
        "vhost": "/",
        "name": name,
        "messages_ready": ready,
        "messages_unacknowledged": 0,
        "consumers": 0,
        "message_bytes": 0,
        "oldest_seconds": None,
        "publish": published,
        "deliver_get": 0,
        "redeliver": 0,
        "ack": 0,
        **more,
    }


def sample(at: float, *queues: Row, **figures: object) -> Sample:
    return Sample(at, {**OVERVIEW, **figures}, list(queues), [])


BEFORE = sample(10.0, queue("slow", published=100), queue("fast", published=100))
AFTER = sample(12.0, queue("slow", 50, 102, oldest_seconds=600.0), queue("fast", 1, 300))


def names(view: View) -> list[str]:
    return [row["name"] for row in rows_of(BEFORE, AFTER, view)]


def test_rates_are_differences_of_counters_by_the_time_between() -> None:
    rates = {row["name"]: row["publish_rate"] for row in rows_of(BEFORE, AFTER, View())}
    assert rates == {"slow": 1.0, "fast": 100.0}


def test_a_counter_that_fell_has_no_negative_rate() -> None:
    restarted = sample(12.0, queue("slow", published=3))
    assert rows_of(BEFORE, restarted, View())[0]["publish_rate"] == 0.0


def test_keys_choose_the_order() -> None:
    view = View()
    assert names(view) == ["fast", "slow"]
    for key, first in (("d", "slow"), ("a", "slow"), ("n", "fast"), ("r", "fast")):
        view.press(key)
        assert names(view)[0] == first, key
    view.press("v")
    assert names(view) == ["slow", "fast"]


def test_a_filter_is_typed_and_cleared() -> None:
    view = View()
    for key in "/flow\x7f\x7f\x7fas\r":
        assert view.press(key)
    assert (view.pattern, view.typing) == ("fas", False)
    assert names(view) == ["fast"]
    view.press("/")
    view.press("q")  # a letter of the filter, while it is typed
    assert view.pattern == "q"
    view.press("\x1b")
    assert names(view) == ["fast", "slow"]


def test_the_key_q_leaves_the_view() -> None:
    assert not View().press("q")


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
@pytest.mark.parametrize("what", ["queues", CONNECTIONS])
def test_no_line_is_wider_or_below_the_terminal(width: int, what: str) -> None:
    shown = lines(BEFORE, AFTER, View(what), width, 10, colour=False)
    assert len(shown) <= 10
    assert max(map(len, shown)) <= width


def test_narrow_terminals_keep_the_name_and_the_depth() -> None:
    wide = lines(BEFORE, AFTER, View(), 120, None, colour=False)
    narrow = lines(BEFORE, AFTER, View(), 24, None, colour=False)
    assert "BYTES" in wide[3]
    assert "QUEUE" in narrow[3]
    assert "READY" in narrow[3]
    assert "BYTES" not in narrow[3]


def test_colours_are_left_out_where_they_are_not_wanted() -> None:
    short = sample(12.0, shortages=["disk"])
    plain = "".join(lines(BEFORE, short, View(), 80, None, colour=False))
    assert "\x1b" not in plain
    assert "publishers are blocked: disk" in plain
    assert "\x1b[31m" in "".join(lines(BEFORE, short, View(), 80, None, colour=True))


def test_control_characters_of_names_do_not_reach_the_terminal() -> None:
    after = sample(12.0, queue("a\x1b[2J\u202eb"))
    assert "\x1b" not in "".join(lines(after, after, View(), 80, None, colour=False))


def test_moving_stops_at_the_last_row() -> None:
    after = sample(12.0, *(queue(f"q{number}") for number in range(30)))
    view = View(sort="n", skip=100)
    shown = lines(after, after, view, 80, 14, colour=False)
    assert view.skip == 20
    assert "q9 " in shown[-1]


def test_numbers_are_short() -> None:
    assert [amount(each) for each in (0, 9999, 10_000, 12_000_000)] == ["0", "9999", "10k", "12M"]
    assert size_text(10_240 * 1024) == "10M"
    assert [age(None), age(59), age(7200), age(3 * 86_400)] == ["-", "59s", "2h", "3d"]


def test_json_has_the_rows_and_their_sums() -> None:
    found = as_json(BEFORE, AFTER, View())
    assert found["seconds"] == 2.0
    assert found["totals"]["messages_ready"] == 51
    assert [row["name"] for row in found["queues"]] == ["fast", "slow"]
