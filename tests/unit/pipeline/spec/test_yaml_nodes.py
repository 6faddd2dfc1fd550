"""A file's values know their lines, and every complaint names one."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.pipeline import limits
from harebell.pipeline.errors import Complaints, DescriptionError, PipelineError
from harebell.pipeline.spec.yaml_nodes import parse, read, unknown_keys


def complaint(text: str, **variables: str) -> str:
    with pytest.raises(DescriptionError) as error:
        parse(text, "p.yaml", variables)
    return str(error.value)


def test_values_have_types_and_lines() -> None:
    root = parse("a: 1\nb:\n  - x\n  - true\nc: {d: null, e: 1.5}\n", "p.yaml", {})
    assert root.plain == {"a": 1, "b": ["x", True], "c": {"d": None, "e": 1.5}}
    assert root.value["b"].value[1].line == 4
    assert root.keys == {"a": 1, "b": 2, "c": 5}


def test_the_text_of_a_block_begins_below_its_mark() -> None:
    root = parse("sql: |\n  SELECT 1\nother: x\n", "p.yaml", {})
    assert root.value["sql"].text_line == 2
    assert root.value["other"].text_line == 3


def test_a_date_stays_the_text_that_it_is() -> None:
    assert parse("a: 2013-01-01", "p.yaml", {}).plain == {"a": "2013-01-01"}


def test_variables_become_what_they_stand_for_and_get_the_type_of_that() -> None:
    text = 'a: ${N}\nb: "${N}"\nc: ${M:-none}\nd: $$5 ${E:-}x\n'
    assert parse(text, "p.yaml", {"N": "7"}).plain == {"a": 7, "b": "7", "c": "none", "d": "$5 x"}


def test_a_variable_that_is_not_set_is_named_with_its_line() -> None:
    assert complaint("a: 1\nb: ${HOST}\n") == (
        "p.yaml:2: the variable HOST is not set: set it in the environment, with --set HOST=..., "
        "or give it a default, ${HOST:-...}"
    )


def test_a_key_that_stands_twice_is_refused() -> None:
    assert "p.yaml:3: the key a stands here twice; the first is in line 1" in complaint(
        "a: 1\nb: 2\na: 3\n"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: {b: ${N}}", 'within {...} and [...] a variable needs quotes: "${NAME}"'),
        ("a: [1", "p.yaml:1: this is no YAML: "),
        ("a: 1\n b: 2\n", "p.yaml:2: this is no YAML: "),
        ("", "p.yaml:1: the file is empty"),
        ("a: !!int x\n", "p.yaml:1: 'x' is not what its tag says"),
        ("a: \x00", "p.yaml:1: this is no YAML: "),
        ("a: &a [*a]", "more than"),
    ],
)
def test_invalid_yaml_is_refused_with_its_line(text: str, said: str) -> None:
    assert said in complaint(text)


def test_anchors_cannot_make_a_short_file_endless() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, 9)]
    assert f"more than {limits.PIPELINE_NODES} values" in complaint("\n".join(lines))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"none\.yaml: No such file"):
        read(tmp_path / "none.yaml", {})
    large = tmp_path / "large.yaml"
    large.write_bytes(b"#" * (limits.PIPELINE_FILE_BYTES + 1))
    with pytest.raises(PipelineError, match="a pipeline has at most"):
        read(large, {})


def test_complaints_come_in_the_order_of_the_file() -> None:
    complaints = Complaints("p.yaml")
    complaints.add(5, "later")
    unknown_keys(parse("quue: 1", "p.yaml", {}), ("queue", "url"), "source", complaints)
    with pytest.raises(DescriptionError) as error:
        complaints.settle()
    assert str(error.value).splitlines() == [
        "p.yaml:1: unknown key 'quue' in source: did you mean queue?",
        "p.yaml:5: later",
    ]
