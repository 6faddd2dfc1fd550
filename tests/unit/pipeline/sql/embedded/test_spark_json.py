"""JSON that DuckDB reads otherwise than Spark: each answer is Spark's."""

from __future__ import annotations

import pytest

from harebell.pipeline.sql.embedded.spark_json import spark_json


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{'a': 1}", "1"),
        ("""{'b': 'it\\'s "so"', "a": 'x'}""", "x"),
        ("""{'a': 'it\\'s "so"'}""", 'it\'s "so"'),
        ('{"a": "two\nlines"}', "two\nlines"),
        (' \t\r\n{"a": 1} and more', "1"),
        ('{"a": 1}{"a": 2}', "1"),
        ('{"a": null, "a": 2}', "2"),
        ('{"a": 1, "a": null}', "1"),
        ('{"a": true}', "true"),
        ('{"a": {"b": [1, {}], "c": null}}', '{"b":[1,{}],"c":null}'),
    ],
)
def test_the_first_value_of_a_text_is_read_with_what_spark_allows(text: str, found: str) -> None:
    assert spark_json(text, '$."a"') == found


@pytest.mark.parametrize(
    "text",
    [
        *('{"a": NaN}', '{"a": 1, "b": -Infinity}', '{"a": [1,]}', '{"a": 1,}', '{"a": 1'),
        *("{a: 1}", '\x0b{"a": 1}', '{"a": 01}', "{'a: 1", '{"a": null}', '{"a": "\\ud83d"}'),
        *('[{"a": 1}]', "{" * 100_000, '{"b": 1}'),
    ],
)
def test_what_spark_does_not_read_is_nothing(text: str) -> None:
    assert spark_json(text, '$."a"') is None


@pytest.mark.parametrize(
    ("number", "written"),
    [
        *(("1.10", "1.1"), ("1e5", "100000.0"), ("0.001", "0.001"), ("-0.0", "-0.0")),
        *(("12345678.5", "1.23456785E7"), ("1e7", "1.0E7"), ("-0.0001", "-1.0E-4")),
        *(("1e400", '"Infinity"'), ("[-1e400]", '["-Infinity"]'), ("-0", "0")),
        ("12345678901234567890123", "12345678901234567890123"),
    ],
)
def test_numbers_are_written_as_java_writes_them(number: str, written: str) -> None:
    assert spark_json(f'{{"a": {number}}}', '$."a"') == written


def test_a_sign_of_two_halves_is_escaped_within_an_object_and_not_alone() -> None:
    text = '{"a": {"x": "\U0001f600é"}}'
    assert spark_json(text, '$."a"') == '{"x":"\\uD83D\\uDE00é"}'
    assert spark_json(text, '$."a"."x"') == "\U0001f600é"


def test_a_path_goes_through_names_and_places() -> None:
    text = "[{'a b': [1, [2, 3]]}]"
    assert spark_json(text, '$[0]."a b"[1][0]') == "2"
    for path in ('$[1]."a b"', '$[0]."a b"[7]', '$."a b"', "$[0][0]"):
        assert spark_json(text, path) is None


@pytest.mark.parametrize("end", ["", "\\"])
def test_a_string_that_does_not_end_is_read_once(end: str) -> None:
    # Looked for from each quote on, it would take hours.
    assert spark_json("{'" + '\\"' * 1_000_000 + end, '$."a"') is None


@pytest.mark.parametrize("text", ["{'a': " + "[" * 900 + "]" * 900 + "}", "[" * 100_000])
def test_what_is_nested_too_deeply_is_left_to_spark(text: str) -> None:
    with pytest.raises(ValueError, match="nested as deeply"):
        spark_json(text, '$."a"')
