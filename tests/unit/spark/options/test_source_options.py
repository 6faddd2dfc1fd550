"""The options: Spark's habits kept, and every mistake named before anything is connected to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harebell.spark.options.source_options import _READERS, OptionError, Options, parse

NOTHING: dict[str, str] = {}


def wrong(**given: str) -> str:
    with pytest.raises(OptionError) as caught:
        parse({"queue": "q", **given}, NOTHING)
    return str(caught.value)


def test_a_queue_is_all_that_must_be_said() -> None:
    options = parse({"queue": "orders"}, NOTHING)
    assert options.queue == "orders"
    assert options.max_offsets_per_trigger == 250_000
    assert options.rows_per_batch == 8_192
    assert options.fetch_timeout == 30
    assert options.long_poll_ms == 200
    assert options.include_headers
    assert options.include_properties
    assert (options.url.host, options.url.port) == ("127.0.0.1", 5672)


def test_the_case_of_a_name_does_not_matter() -> None:
    options = parse({"QUEUE": "q", "maxoffsetspertrigger": "7", "RowsPerBatch": "3"}, NOTHING)
    assert (options.max_offsets_per_trigger, options.rows_per_batch) == (7, 3)


def test_the_environment_says_where_the_broker_is_unless_an_option_does() -> None:
    environment = {"HAREBELL_URL": "amqp://there:1234"}
    assert parse({"queue": "q"}, environment).url.host == "there"
    assert parse({"queue": "q", "url": "amqp://here"}, environment).url.host == "here"


def test_as_much_is_prefetched_as_goes_into_a_batch_unless_told_otherwise() -> None:
    assert parse({"queue": "q", "maxOffsetsPerTrigger": "10"}, NOTHING).window == 10
    both = {"queue": "q", "maxOffsetsPerTrigger": "10", "prefetch": "25"}
    assert parse(both, NOTHING).window == 25


def test_there_is_one_partition_per_core_unless_told_otherwise() -> None:
    assert parse({"queue": "q"}, NOTHING).partitions >= 1
    assert parse({"queue": "q", "minPartitions": "9"}, NOTHING).partitions == 9


def test_a_missing_queue_is_named_with_an_example() -> None:
    with pytest.raises(
        OptionError, match=r'option queue is missing.*\.option\("queue", "orders"\)'
    ):
        parse({}, NOTHING)


def test_an_unknown_option_is_answered_with_the_nearest_one() -> None:
    assert wrong(maxOffsetPerTriger="5") == (
        "unknown option 'maxOffsetPerTriger': did you mean maxOffsetsPerTrigger?"
    )


def test_an_option_like_no_other_is_answered_with_all_of_them() -> None:
    text = wrong(zzz="5")
    assert text.startswith("unknown option 'zzz': the options are bindingKeys, ")
    assert "fetchTimeout, group, " in text


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", ""])
def test_a_number_that_is_none_is_named(value: str) -> None:
    text = wrong(maxOffsetsPerTrigger=value)
    assert text == (
        f"the option maxOffsetsPerTrigger must be a whole number at least 1, not {value!r}"
    )


def test_a_number_that_is_too_large_is_named_with_its_range() -> None:
    assert wrong(rowsPerBatch="70000") == (
        "the option rowsPerBatch must be a whole number from 1 to 65536, not '70000'"
    )


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("30s", 30), ("500ms", 0.5), ("2m", 120), ("1.5 s", 1.5)]
)
def test_times_have_units(text: str, seconds: float) -> None:
    assert parse({"queue": "q", "fetchTimeout": text}, NOTHING).fetch_timeout == seconds


@pytest.mark.parametrize("value", ["0", "-3s", "soon", "3 fortnights", "nan", "inf", ""])
def test_a_time_that_is_none_is_named(value: str) -> None:
    assert "fetchTimeout must be a time above 0 such as 30s" in wrong(fetchTimeout=value)


def test_a_flag_is_true_or_false() -> None:
    assert not parse({"queue": "q", "includeHeaders": "FALSE"}, NOTHING).include_headers
    assert wrong(includeHeaders="perhaps") == (
        "the option includeHeaders must be true or false, not 'perhaps'"
    )


def test_a_queue_name_must_fit_a_short_string() -> None:
    with pytest.raises(OptionError, match="queue's name of 1 to 255 bytes"):
        parse({"queue": "é" * 128}, NOTHING)
    with pytest.raises(OptionError, match="queue's name of 1 to 255 bytes"):
        parse({"queue": ""}, NOTHING)


def test_a_relative_spool_is_refused() -> None:
    assert "must be an absolute path" in wrong(spoolDir="spool")


def test_a_wrong_address_is_explained_without_the_password() -> None:
    text = wrong(url="amqp://alice:hunter2@there:99999/")
    assert text.startswith("the option url is wrong: ")
    assert "hunter2" not in text


def test_a_password_is_never_shown() -> None:
    options = parse({"queue": "q", "url": "amqp://alice:hunter2@there"}, NOTHING)
    assert isinstance(options, Options)
    assert options.url.password == "hunter2"
    assert "hunter2" not in f"{options!r} {options.url!r}"


def test_every_option_has_its_row_in_the_documentation() -> None:
    page = (Path(__file__).parents[4] / "docs" / "reference" / "spark-options.md").read_text()
    section = page.partition("## Options")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.M))
    options = parse({"queue": "q"}, NOTHING)
    assert {name.lower() for name in rows} == set(_READERS)
    assert rows["maxOffsetsPerTrigger"] == f"`{options.max_offsets_per_trigger}`"
    assert rows["rowsPerBatch"] == f"`{options.rows_per_batch}`"
    assert rows["longPollMs"] == f"`{options.long_poll_ms}`"
    assert rows["fetchTimeout"] == f"`{options.fetch_timeout:g}s`"


def test_a_lease_is_not_asked_for_longer_than_a_broker_keeps_it() -> None:
    assert parse({"queue": "q"}, NOTHING).lease_timeout == 86_400
    assert parse({"queue": "q", "leaseTimeout": "720h"}, NOTHING).lease_timeout == 30 * 86_400
    assert wrong(leaseTimeout="721h") == (
        "the option leaseTimeout must be at most 720h, for which a broker keeps a lease, not '721h'"
    )


def test_a_size_that_no_broker_can_count_is_named() -> None:
    assert "maxBytesPerTrigger must be a size above 0" in wrong(maxBytesPerTrigger="9999999999g")
