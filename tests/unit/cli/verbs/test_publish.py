"""Where bodies come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.cli.verb import Failure
from harebell.cli.verbs.publish import bodies_of, repeated


def test_an_argument_is_one_body_or_one_per_line() -> None:
    assert list(bodies_of("a\nb", (), lines=False)) == [b"a\nb"]
    assert list(bodies_of("a\nb", (), lines=True)) == [b"a", b"b"]


def test_octets_that_are_not_utf_8_survive_the_command_line() -> None:
    argument = b"\xff\xfe".decode("utf-8", "surrogateescape")
    assert list(bodies_of(argument, (), lines=False)) == [b"\xff\xfe"]


def test_files_are_read_one_after_the_other(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(f"{name}1\n{name}2".encode())
    names = (str(tmp_path / "a"), str(tmp_path / "b"))
    assert list(bodies_of(None, names, lines=False)) == [b"a1\na2", b"b1\nb2"]
    assert list(bodies_of(None, names, lines=True)) == [b"a1", b"a2", b"b1", b"b2"]


def test_a_file_is_opened_only_when_its_turn_has_come(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"a")
    bodies = bodies_of(None, (str(tmp_path / "a"), str(tmp_path / "missing")), lines=False)
    assert next(bodies) == b"a"
    with pytest.raises(Failure, match=r"cannot read .*missing: No such file or directory"):
        next(bodies)


def test_only_repetition_keeps_bodies_in_memory() -> None:
    assert list(repeated(iter([b"a", b"b"]), 2)) == [b"a", b"b", b"a", b"b"]
    endless = repeated(iter(lambda: b"x", None), 1)
    assert [next(endless) for _ in range(3)] == [b"x"] * 3
