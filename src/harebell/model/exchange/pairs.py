"""An index of sets of header pairs: find the matching sets without testing each.

Every pair of a name and a value has a number. A set of which all pairs must match is filed under
one of them, the one with the fewest sets so far, and tested only if a message has that pair. A set
of which any pair may match is filed under each.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from harebell.base.c_types import Done, i64, isize

Pair = tuple[str] | tuple[str, Hashable]
"""A name, and any value or just this one."""


class PairSet:
    """A set of pairs, and the destination that it leads to."""

    def __init__(self, pairs: tuple[int, ...], slot: isize) -> None:
        self.pairs = pairs
        self.slot = slot
        self.uses: i64 = 0
        self.filed: isize = -1


class PairIndex:
    """Sets of pairs with numbers, found by the pairs of a message.

    Attributes:
        cost: sets that the last match tested.
    """

    def __init__(self) -> None:
        self.cost: i64 = 0
        self._ids: dict[Pair, int] = {}
        self._uses: list[int] = []
        self._free: list[int] = []
        self._all: list[dict[tuple[tuple[int, ...], int], PairSet]] = []
        self._any: list[dict[int, int]] = []
        self._always: dict[int, int] = {}
        self._sets: dict[tuple[tuple[int, ...], int], PairSet] = {}
        # Flags by the number of a pair, and by that of a destination; all 0 between matches.
        self._present: bytearray = bytearray()
        self._seen: bytearray = bytearray()

    def __len__(self) -> int:
        """Return how many different pairs there are."""
        return len(self._ids)

    def add(self, pairs: Iterable[Pair], every: bool, slot: int) -> None:
        """Add a set for a number from 0; a set that is added twice has to be removed twice.

        Args:
            pairs: the pairs of the set.
            every: whether all pairs must match, or any.
            slot: the number.
        """
        ids = self._numbered(pairs)
        if slot >= len(self._seen):
            self._seen.extend(bytes(slot + 1 - len(self._seen)))
        if not every:
            for each in ids:
                self._any[each][slot] = self._any[each].get(slot, 0) + 1
        elif not ids:
            self._always[slot] = self._always.get(slot, 0) + 1
        else:
            key = (ids, slot)
            pair_set = self._sets.get(key)
            if pair_set is None:
                pair_set = self._sets[key] = PairSet(ids, slot)
                # Where the fewest are: a message tests every set that is filed under one of its
                # pairs.
                pair_set.filed = min(ids, key=lambda each: len(self._all[each]))
                self._all[pair_set.filed][key] = pair_set
            pair_set.uses += 1

    def remove(self, pairs: Iterable[Pair], every: bool, slot: int) -> None:
        """Undo `add` with the same arguments."""
        listed = list(pairs)
        ids = tuple([self._ids[pair] for pair in listed])
        if not every:
            for each in ids:
                _less(self._any[each], slot)
        elif not ids:
            _less(self._always, slot)
        else:
            key = (ids, slot)
            pair_set = self._sets[key]
            pair_set.uses -= 1
            if not pair_set.uses:
                del self._sets[key]
                del self._all[pair_set.filed][key]
        for pair in listed:
            number = self._ids[pair]
            self._uses[number] -= 1
            if not self._uses[number]:
                del self._ids[pair]
                self._free.append(number)

    def _numbered(self, pairs: Iterable[Pair]) -> tuple[int, ...]:
        ids: list[int] = []
        for pair in pairs:
            number = self._ids.get(pair)
            if number is None:
                if self._free:
                    number = self._free.pop()
                else:
                    number = len(self._uses)
                    self._uses.append(0)
                    self._all.append({})
                    self._any.append({})
                    self._present.append(0)
                self._ids[pair] = number
            self._uses[number] += 1
            ids.append(number)
        return tuple(ids)

    def match(self, pairs: Iterable[Pair]) -> list[int]:
        """Return the numbers of the matching sets, each once."""
        present: list[int] = []
        flags = self._present
        for pair in pairs:
            number = self._ids.get(pair)
            if number is not None and not flags[number]:
                flags[number] = 1
                present.append(number)
        slots = list(self._always)
        seen = self._seen
        for slot in slots:
            seen[slot] = 1
        cost = len(slots)
        for number in present:
            for slot in self._any[number]:
                cost += 1
                if not seen[slot]:
                    seen[slot] = 1
                    slots.append(slot)
            if self._all[number]:
                cost += len(self._all[number])
                self._match_sets(self._all[number], slots)
        # Only the flags that this match has set: there may be a million pairs.
        for number in present:
            flags[number] = 0
        for slot in slots:
            seen[slot] = 0
        self.cost = cost
        return slots

    def _match_sets(
        self, filed: dict[tuple[tuple[int, ...], int], PairSet], slots: list[int]
    ) -> Done:
        """Test the sets that are filed under a pair of the message."""
        flags = self._present
        seen = self._seen
        pair_set: PairSet
        for pair_set in filed.values():
            slot: isize = pair_set.slot
            if seen[slot]:
                continue
            pairs: tuple[int, ...] = pair_set.pairs
            each: isize
            for each in pairs:
                if not flags[each]:
                    break
            else:
                seen[slot] = 1
                slots.append(slot)
        return 0


def _less(counted: dict[int, int], slot: int) -> None:
    counted[slot] -= 1
    if not counted[slot]:
        del counted[slot]
