"""Files of the audit trail: what is kept, found again, and passed over."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from harebell.admin.audit import number_at
from harebell.config import Config
from harebell.server.audit_trail import AuditTrail
from harebell.server.limits import AUDIT_LINE_BYTES

DAY_MS = 86_400_000
START_MS = 1_700_000_000_000
END = 2**62


class Room:
    """A data directory, a clock and a log."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.config = replace(Config(data_dir=path), **settings)
        self.ms = START_MS
        self.log: list[str] = []

    def trail(self, store: int = 1) -> AuditTrail:
        """Return a trail that goes on with what is there."""
        return AuditTrail(
            lambda: self.config, store, lambda: self.ms, lambda _, text: self.log.append(text)
        )

    def files(self) -> list[Path]:
        """The files, the oldest first."""
        return sorted((self.config.data_dir / "audit").iterdir())


def in_a_loop(work: Callable[[], Any]) -> Any:
    """Run something in an event loop."""

    async def run() -> Any:
        result = work()
        return await result if isinstance(result, Awaitable) else result

    return asyncio.run(run())


def acts(trail: AuditTrail, before: int = END, wanted: bytes = b"") -> list[Any]:
    """The acts of the lines, the newest first."""
    found = trail.newest_first(before, wanted)
    return [line["act"] for line in found if line is not None]


def test_lines_have_growing_numbers_after_a_restart_and_with_a_clock_that_goes_back(
    tmp_path: Path,
) -> None:
    room = Room(tmp_path)

    def work() -> None:
        first, later = room.trail(), room.trail()
        numbers = [first.add({"act": each}) for each in range(3)]
        room.ms -= 5_000
        first.close()
        numbers += [later.add({"act": each}) for each in (3, 4)]
        later.close()
        assert numbers == sorted(set(numbers))
        assert numbers[0] == number_at(START_MS) + 1
        assert acts(room.trail()) == [4, 3, 2, 1, 0]
        assert acts(room.trail(), numbers[2]) == [1, 0]

    in_a_loop(work)


def test_the_oldest_files_go_when_all_are_too_large(tmp_path: Path) -> None:
    room = Room(tmp_path, audit_size=20 * AUDIT_LINE_BYTES)

    def work() -> None:
        trail = room.trail()
        for each in range(200):
            trail.add({"act": each, "reason": "x" * (AUDIT_LINE_BYTES // 4)})
        trail.close()
        size = sum(path.stat().st_size for path in room.files())
        assert size <= room.config.audit_size + AUDIT_LINE_BYTES
        found = acts(room.trail())
        assert found == list(range(199, 199 - len(found), -1))
        assert len(found) > 50

    in_a_loop(work)


def test_acts_that_are_too_old_go_with_their_file(tmp_path: Path) -> None:
    room = Room(tmp_path, audit_days=7)

    def work() -> None:
        trail = room.trail()
        trail.add({"act": "old"})
        trail.close()
        (path,) = room.files()
        os.utime(path, (START_MS / 1000, START_MS / 1000))
        room.ms += 6 * DAY_MS
        assert acts(room.trail()) == ["old"]
        room.ms += 2 * DAY_MS
        assert acts(room.trail()) == []
        assert room.files() == []

    in_a_loop(work)


def test_a_day_has_a_file(tmp_path: Path) -> None:
    room = Room(tmp_path)

    def work() -> None:
        trail = room.trail()
        for each in range(3):
            trail.add({"act": each})
            room.ms += DAY_MS
        trail.close()

    in_a_loop(work)
    assert len(room.files()) == 3


def test_lines_that_were_torn_are_passed_over_and_the_next_one_is_whole(tmp_path: Path) -> None:
    room = Room(tmp_path)

    def work() -> None:
        trail = room.trail()
        trail.add({"act": "whole"})
        trail.close()
        for rest in (b'{"number":17,"act":"to', b"\xff\x00", b'["number"]', b'{"number":"x"}'):
            with room.files()[-1].open("ab") as file:
                file.write(rest)
            again = room.trail()
            again.add({"act": "next"})
            again.close()
        assert acts(room.trail()) == ["next"] * 4 + ["whole"]

    in_a_loop(work)


def test_a_long_line_has_no_arguments_and_a_text_is_found_in_any_letters(tmp_path: Path) -> None:
    room = Room(tmp_path)

    def work() -> None:
        trail = room.trail()
        trail.add({"act": "long", "arguments": {"a": "x" * AUDIT_LINE_BYTES}, "before": None})
        trail.add({"act": "short", "object": "Orders"})
        (line,) = [each for each in trail.newest_first(END, b"long") if each is not None]
        assert (line["arguments"], line["before"]) == ("…", None)
        assert acts(trail, wanted=b"orders") == ["short"]
        trail.close()

    in_a_loop(work)


def test_files_of_a_store_that_was_joined_are_read_by_time(tmp_path: Path) -> None:
    room = Room(tmp_path)

    def work() -> None:
        first, second = room.trail(1), room.trail(2)
        for each in range(6):
            room.ms += 10
            (first if each % 2 else second).add({"act": each})
        first.close()
        second.close()
        assert len(room.files()) == 2
        assert acts(room.trail(1)) == [5, 4, 3, 2, 1, 0]

    in_a_loop(work)


def test_blocks_without_a_wanted_line_are_pauses(tmp_path: Path) -> None:
    room = Room(tmp_path)

    def work() -> None:
        trail = room.trail()
        for each in range(600):
            trail.add({"act": each, "reason": "x" * 400})
        trail.close()
        found = list(room.trail().newest_first(END, b"nothing"))
        assert found == [None] * len(found)
        assert len(found) >= 4

    in_a_loop(work)


def test_a_trail_that_cannot_be_written_is_in_the_log(tmp_path: Path) -> None:
    room = Room(tmp_path)
    (tmp_path / "audit").write_text("")

    def work() -> None:
        assert room.trail().add({"act": "vhosts.add", "user": "ann"}) == 0

    in_a_loop(work)
    assert "cannot be written" in room.log[0]
    assert "'ann'" in room.log[1]


@pytest.mark.parametrize("size", [0])
def test_no_size_is_no_trail(tmp_path: Path, size: int) -> None:
    room = Room(tmp_path, audit_size=size)
    assert in_a_loop(lambda: room.trail().add({"act": "x"})) == 0
    assert not (tmp_path / "audit").exists()
