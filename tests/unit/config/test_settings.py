"""The table of keys, and the readers that turn what was written into values."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harebell.config import settings
from harebell.config.settings import SETTINGS


def test_a_key_has_one_name_in_three_spellings() -> None:
    for setting in SETTINGS:
        assert re.fullmatch(r"[a-z]+(_[a-z]+2?)*", setting.name)
        assert setting.variable == "HAREBELL_" + setting.name.upper()
        if not setting.secret:
            assert setting.flag == "--" + setting.name.replace("_", "-")


def test_every_key_says_what_it_decides_in_a_line() -> None:
    for setting in SETTINGS:
        assert setting.help.endswith(".")
        assert len(setting.help) <= 80


def test_only_passwords_and_what_has_one_are_secret() -> None:
    found = [setting.name for setting in SETTINGS if setting.secret]
    assert found == [
        *("tls_key_password", "management_schema_registry", "storage", "definitions_https_url"),
        *("definitions_tls_key_password", "default_pass", "default_users"),
    ]


@pytest.mark.parametrize(("written", "value"), [("7", 7), (" 7 ", 7), (7, 7), ("-3", -3)])
def test_whole_numbers_are_read(written: object, value: int) -> None:
    assert settings.whole(-5, 10)(written) == value


@pytest.mark.parametrize("written", [True, 1.0, "1.0", "x", "", None, 11, "11", -6, "9" * 5000])
def test_what_is_no_whole_number_in_range_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must be a whole number from -5 to 10"):
        settings.whole(-5, 10)(written)


@pytest.mark.parametrize(("written", "value"), [("1.5", 1.5), (2, 2.0), ("1e1", 10.0)])
def test_seconds_are_read(written: object, value: float) -> None:
    assert settings.seconds(1, 10)(written) == value


@pytest.mark.parametrize("written", [True, "nan", "inf", 0.5, "soon", None, []])
def test_what_is_no_time_span_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must be a number of seconds from 1 to 10"):
        settings.seconds(1, 10)(written)


@pytest.mark.parametrize(
    "written", [True, 1.5, "", "KiB", "-1", "1 XB", "1KiBB", None, 99, "9" * 500 + "GiB"]
)
def test_what_is_no_size_in_range_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must be a size from 100 to 2000 bytes"):
        settings.size(100, 2000)(written)


@pytest.mark.parametrize("written", [True, "", "00.", -1, -0.4, 1.01, "101%", "nan", None, []])
def test_what_is_no_watermark_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="share of the machine's memory"):
        settings.watermark(written)


def test_a_schema_has_room_for_what_is_added_to_its_name() -> None:
    longest = "s" * 55
    assert settings.schema(longest) == longest
    # PostgreSQL cuts a name after 63 bytes: one of 62 would be the schema of store 2 as well.
    for refused in ("s" * 56, "", "2nd", "Upper", 'quo"te', None):
        with pytest.raises(ValueError, match="1 to 55 lower-case letters"):
            settings.schema(refused)


def test_choices_do_not_mind_capitals() -> None:
    read = settings.choice("auto", "uvloop")
    assert read(" UVLoop ") == "uvloop"
    with pytest.raises(ValueError, match="must be one of auto, uvloop"):
        read("asyncio")


def test_text_is_measured_in_octets() -> None:
    assert settings.text("ö" * 127) == "ö" * 127
    with pytest.raises(ValueError, match="1 to 255 bytes"):
        settings.text("ö" * 128)


def test_directories_and_files_may_start_at_home(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x.pem").touch()
    assert settings.directory("~/data") == tmp_path / "data"
    assert settings.pem_file("~/x.pem") == str(tmp_path / "x.pem")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("amqp-0-10t://127.0.0.1:5699", (("amqp-0-10t", "127.0.0.1", 5699),)),
        ("amqp-0-10t://localhost", (("amqp-0-10t", "localhost", 5673),)),
        ("amqp://[::1]:0, amqp-0-10t://::1/", None),
        ("amqp://[::1]:0, amqp-0-10t://[::1]/", (("amqp", "::1", 0), ("amqp-0-10t", "::1", 5673))),
        (["amqp://a", "amqp://b:1"], (("amqp", "a", 5672), ("amqp", "b", 1))),
    ],
)
def test_addresses_to_listen_on_are_read(written: object, value: object) -> None:
    if value is None:
        with pytest.raises(ValueError, match="amqp-0-10t://host:port"):
            settings.listening(written)
    else:
        assert settings.listening(written) == value


@pytest.mark.parametrize("written", ["", "5673", "http://a", "amqp://", "amqp://a:99999", 7, [7]])
def test_what_is_no_address_to_listen_on_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="amqp-0-10t://host:port"):
        settings.listening(written)
