"""The sparse sequence against a plain dict that does the same in the obvious way."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from harebell.base.sequence import Sequence

CHUNK_SIZE = 128
"""Members per chunk; the compiled module keeps it to itself."""


class SequenceAgainstDict(RuleBasedStateMachine):
    """Both get the same calls and must give the same answers."""

    def __init__(self) -> None:
        super().__init__()
        self.sequence = Sequence(1)
        self.members: dict[int, str] = {}
        self.next = 1
        self.taken: list[int] = []

    @rule(count=st.sampled_from([1, 2, CHUNK_SIZE - 1, CHUNK_SIZE, 3 * CHUNK_SIZE]))
    def append(self, count: int) -> None:
        for _ in range(count):
            assert self.sequence.append(f"m{self.next}") == self.next
            self.members[self.next] = f"m{self.next}"
            self.next += 1

    @rule(gap=st.sampled_from([0, 1, CHUNK_SIZE]))
    def put_ahead(self, gap: int) -> None:
        number = self.next + gap
        self.sequence.put(number, "ahead")
        self.members[number] = "ahead"
        self.next = number + 1

    @rule(data=st.data())
    def take_any(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, self.next + 1))
        expected = self.members.pop(number, None)
        assert self.sequence.take(number) == expected
        if expected is not None:
            self.taken.append(number)

    @rule(count=st.sampled_from([1, CHUNK_SIZE, 2 * CHUNK_SIZE]))
    def take_the_oldest(self, count: int) -> None:
        for number in sorted(self.members)[:count]:
            assert self.sequence.take(number) == self.members.pop(number)

    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        if not self.taken:
            return
        number = self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))
        self.sequence.put(number, "again")
        self.members[number] = "again"

    @rule(count=st.sampled_from([2, CHUNK_SIZE, 3 * CHUNK_SIZE]))
    def put_runs(self, count: int) -> None:
        """One object under many numbers, and another one behind them."""
        for member in (f"run of {self.next}", f"run behind {self.next}"):
            for _ in range(count):
                self.sequence.append(member)
                self.members[self.next] = member
                self.next += 1

    @rule(data=st.data())
    def take_run(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, self.next + 1))
        last = data.draw(st.integers(number - 1, self.next + 1))
        member = self.members.get(number)
        end = number
        while member is not None and end <= last and self.members.get(end) is member:
            del self.members[end]
            self.taken.append(end)
            end += 1
        assert self.sequence.take_run(number, last) == end - number

    @rule()
    def clear(self) -> None:
        self.sequence.clear()
        self.members.clear()
        self.taken.clear()

    @invariant()
    def they_agree(self) -> None:
        assert self.sequence.count == len(self.members)
        assert self.sequence.next == self.next
        assert self.sequence.first() == min(self.members, default=self.next)
        assert self.sequence.numbers() == sorted(self.members)
        for number in list(self.members)[:5] + list(self.members)[-5:]:
            assert self.sequence.get(number) == self.members[number]


TestSequenceAgainstDict = SequenceAgainstDict.TestCase
TestSequenceAgainstDict.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_a_number_without_a_member_has_none() -> None:
    sequence = Sequence()
    sequence.append("a")
    assert sequence.get(1) is None
    assert sequence.get(CHUNK_SIZE * 9) is None
    assert sequence.take(CHUNK_SIZE * 9) is None


def test_taking_twice_gives_the_member_once() -> None:
    sequence = Sequence()
    number = sequence.append("a")
    assert sequence.take(number) == "a"
    assert sequence.take(number) is None
    assert sequence.count == 0


def test_a_long_stay_does_not_keep_the_numbers_after_it() -> None:
    # One member stays; a hundred thousand pass. Lookups stay right across all the dropped chunks.
    sequence = Sequence()
    stays = sequence.append("stays")
    for _ in range(100_000):
        sequence.take(sequence.append("passes"))
    assert sequence.numbers() == [stays]
    assert sequence.first() == stays
    assert sequence.take(stays) == "stays"
    assert sequence.first() == sequence.next == 100_001


def test_a_gap_of_any_size_is_passed_over_at_once() -> None:
    sequence = Sequence()
    for number in (3, 10**12, 10**15):
        sequence.put(number, "member")
    assert sequence.take(3) == "member"
    assert sequence.first() == 10**12
    assert sequence.next_from(10**12 + 1) == 10**15
    assert sequence.next_from(10**15 + 1) == sequence.next == 10**15 + 1


def test_numbers_go_on_after_clearing() -> None:
    sequence = Sequence(1)
    for _ in range(CHUNK_SIZE + 3):
        sequence.append("x")
    sequence.clear()
    assert sequence.append("y") == CHUNK_SIZE + 4
    assert sequence.first() == CHUNK_SIZE + 4
