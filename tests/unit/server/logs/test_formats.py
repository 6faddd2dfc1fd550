"""The forms of a log line."""

from __future__ import annotations

import json
import time

import pytest
from msgspec.structs import replace

from harebell.config import Config
from harebell.server.logs.formats import Line, formatter_of

AT = 1_728_027_515_600_956_789
LINE = Line(AT, "warning", "connection", 899, 'user "é" refused')


@pytest.fixture(autouse=True)
def new_york(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "EST5EDT")
    time.tzset()


def shown(**settings: str) -> str:
    config = Config(**{f"log_console_{key}": value for key, value in settings.items()})
    return formatter_of(config, "console", "harebell@here").format(LINE)


def test_a_line_looks_as_in_rabbitmq() -> None:
    assert shown() == ('2024-10-04 03:38:35.600956-04:00 [warning] <0.899.0> user "é" refused')


@pytest.mark.parametrize(
    ("time_format", "text"),
    [
        ("rfc3339_t", "2024-10-04T03:38:35.600956-04:00"),
        ("epoch_usecs", "1728027515600956"),
        ("epoch_secs", "1728027515.6009567"),
    ],
)
def test_the_time_has_several_forms(time_format: str, text: str) -> None:
    assert shown(time_format=time_format, plaintext_format="$time $msg").startswith(f"{text} ")


@pytest.mark.parametrize(
    ("level_format", "text"),
    [("uc", "WARNING"), ("lc3", "wrn"), ("uc3", "WRN"), ("lc4", "warn"), ("uc4", "WARN")],
)
def test_the_level_has_several_forms(level_format: str, text: str) -> None:
    assert shown(level_format=level_format, plaintext_format="$level $msg").startswith(f"{text} ")


def test_a_line_of_json_has_the_fields_of_rabbitmq() -> None:
    assert json.loads(shown(formatter="json")) == {
        "time": "2024-10-04 03:38:35.600956-04:00",
        "level": "warning",
        "msg": 'user "é" refused',
        "pid": "<0.899.0>",
        "domain": "rabbitmq.connection",
        "node": "harebell@here",
    }


def test_fields_of_json_are_renamed_and_dropped() -> None:
    text = shown(
        formatter="json", json_field_map="level:severity time:ts *:-", time_format="epoch_usecs"
    )
    assert text == '{"severity":"warning","ts":1728027515600956}'
    assert "pid" not in shown(formatter="json", json_field_map="pid:-")


def test_text_in_a_message_is_not_taken_for_a_part_of_the_format() -> None:
    line = replace(LINE, text="$time $level")
    found = formatter_of(Config(log_console_plaintext_format="[$domain] $msg"), "console")
    assert found.format(line) == "[rabbitmq.connection] $time $level"
