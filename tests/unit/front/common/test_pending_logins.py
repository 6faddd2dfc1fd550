"""Connections without a login: how many there may be, and what the log says of the others."""

from __future__ import annotations

from harebell.front.common.pending_logins import PendingLogins


class Door:
    """PendingLogins under limits, and the lines they log."""

    def __init__(self, limit: int = 0, max_per_address: int = 0) -> None:
        self.lines: list[str] = []
        self.newcomers = PendingLogins()
        self.newcomers.limit = limit
        self.newcomers.max_per_address = max_per_address

    def comes(self, origin: int, address: str = "a") -> bool:
        admitted = self.newcomers.admits(address, lambda _, line: self.lines.append(line))
        if admitted:
            self.newcomers.add(origin, address)
        return admitted


def test_without_limits_everybody_may_come() -> None:
    door = Door()
    assert all(door.comes(number) for number in range(100))
    assert len(door.newcomers) == 100


def test_one_address_does_not_take_the_place_of_others() -> None:
    door = Door(max_per_address=2)
    assert [door.comes(number) for number in range(4)] == [True, True, False, False]
    assert door.comes(9, "b")
    assert door.lines == ["2 connections from a have not logged in yet: more are turned away"]


def test_an_opened_connection_makes_room_and_is_forgotten() -> None:
    door = Door(limit=2)
    assert [door.comes(number) for number in range(3)] == [True, True, False]
    door.newcomers.remove(0)
    door.newcomers.remove(0)
    assert door.comes(3)
    door.newcomers.remove(1)
    door.newcomers.remove(3)
    assert len(door.newcomers) == 0
    assert [door.comes(number) for number in (4, 5, 6)] == [True, True, False]
    assert door.lines == ["2 connections have not logged in yet: more are turned away"] * 2
