"""Which patterns of words fit a key (AMQP 0-9-1 3.1.3.3, topic exchanges).

Patterns and keys are written by peers, so the work must stay small whatever they write. A key fits
when it begins with the pattern's prefix, ends with its suffix, and has every segment between them
in this order (`topic_tree.py` says what these are). The first place where a segment fits is always
the right one, for it leaves most to what follows. So a pattern is read once from left to right and
never tried a second time, and no node of the tree is visited twice for a key. `topics.pyx` beside
this file is the same, compiled.
"""

from __future__ import annotations

from harebell.kernels.topic_tree import (
    ANY,
    BEHIND,
    BUCKET,
    FREE,
    LEFT,
    MANY,
    ONE,
    RIGHT,
    UNKNOWN,
    Entry,
    Node,
    Segment,
    canonical,
)


class TopicIndex:
    """Patterns with numbers, and which numbers a key leads to.

    Attributes:
        cost: nodes, patterns and segments that the last match looked at.
    """

    def __init__(self) -> None:
        self.cost = 0
        self._root = Node(LEFT, 0)
        self._entries: dict[str, Entry] = {}
        self._ids: dict[str, int] = {}
        self._uses: list[int] = [0]
        self._free: list[int] = []

    def __len__(self) -> int:
        """How many different patterns there are."""
        return len(self._entries)

    # --- what is bound --------------------------------------------------------------------------

    def add(self, pattern: str, slot: int) -> None:
        """One more pattern leads to a number from 0; the same twice has to be removed twice."""
        words = canonical(pattern)
        name = ".".join(words)
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = Entry(self._numbered(words))
            self._file(entry)
        entry.slots[slot] = entry.slots.get(slot, 0) + 1

    def remove(self, pattern: str, slot: int) -> None:
        """Remove what `add` added."""
        words = canonical(pattern)
        name = ".".join(words)
        entry = self._entries[name]
        if entry.slots[slot] > 1:
            entry.slots[slot] -= 1
            return
        del entry.slots[slot]
        if not entry.slots:
            del self._entries[name]
            self._unfile(entry)
            self._forget(words)

    def _numbered(self, words: list[str]) -> list[Segment]:
        """The parts between `#`, with a number for each word."""
        parts: list[list[int]] = [[]]
        for word in words:
            if word == MANY:
                parts.append([])
            elif word == ONE:
                parts[-1].append(ANY)
            else:
                number = self._ids.get(word)
                if number is None:
                    if self._free:
                        number = self._free.pop()
                    else:
                        number = len(self._uses)
                        self._uses.append(0)
                    self._ids[word] = number
                self._uses[number] += 1
                parts[-1].append(number)
        return [tuple(part) for part in parts]

    def _forget(self, words: list[str]) -> None:
        for word in words:
            number = self._ids.get(word) if word not in (ONE, MANY) else None
            if number is not None:
                self._uses[number] -= 1
                if self._uses[number] == 0:
                    del self._ids[word]
                    self._free.append(number)

    def _file(self, entry: Entry) -> None:
        node = self._root
        while True:
            node.held += 1
            step = node.step(entry) if node.divided else None
            if step is None:
                break
            node = node.grow(step)
        node.bucket.append(entry)
        entry.node = node
        while not node.divided and len(node.bucket) > (BUCKET if node.kind == LEFT else BEHIND):
            # All of them may lead on in the same way.
            node = self._divide(node)

    def _divide(self, node: Node) -> Node:
        """Hand a bucket's patterns on; returns the fullest child."""
        node.divided = True
        bucket, node.bucket = node.bucket, []
        fullest = node
        for entry in bucket:
            step = node.step(entry)
            if step is None:
                node.bucket.append(entry)
                continue
            child = node.grow(step)
            child.held += 1
            child.bucket.append(entry)
            entry.node = child
            if fullest is node or child.held > fullest.held:
                fullest = child
        return fullest

    def _unfile(self, entry: Entry) -> None:
        node = self._root
        node.held -= 1
        while node is not entry.node:
            step = node.step(entry)
            assert step is not None, "a pattern that was added lies in a bucket"
            child = node.child(step)
            assert child is not None, "a pattern that was added has its branch"
            child.held -= 1
            if child.held == 0:
                node.cut(step)
                entry.node = None
                break
            node = child
        else:
            node.bucket.remove(entry)
        if self._root.held == 0:
            self._root = Node(LEFT, 0)

    # --- what fits ------------------------------------------------------------------------------

    def match(self, key: str) -> list[int]:
        """The numbers that patterns lead to which a key fits, each once."""
        words = key.split(".") if key else []
        ids = [self._ids.get(word, UNKNOWN) for word in words]
        places: dict[int, int] = {}
        for at, number in enumerate(ids):
            if number != UNKNOWN:
                places[number] = places.get(number, 0) | 1 << at
        found: dict[int, None] = {}
        cost = 0
        todo = [(self._root, 0, len(ids))]
        while todo:
            node, first, end = todo.pop()
            cost += 1
            for entry in node.bucket:
                cost += 1
                if not _known(entry, found) and _fits(entry, node, ids, places, first, end):
                    found.update(dict.fromkeys(entry.slots))
            if not node.divided:
                continue
            if node.many is not None:
                todo.append((node.many, first, end))
            if node.kind == FREE:
                for number, bits in places.items():
                    if number in node.segments and bits >> first:
                        for segment, child in node.segments[number].items():
                            cost += 1
                            at = _place(segment, places, first, end)
                            if at >= 0:
                                todo.append((child, at + len(segment), end))
            elif first < end:
                left = node.kind == LEFT
                rest = (first + 1, end) if left else (first, end - 1)
                if node.one is not None:
                    todo.append((node.one, *rest))
                word = ids[first if left else end - 1]
                if word in node.children:
                    todo.append((node.children[word], *rest))
        self.cost = cost
        return list(found)


def _known(entry: Entry, found: dict[int, None]) -> bool:
    """Whether a pattern with one number would only find again what was found."""
    return len(entry.slots) == 1 and next(iter(entry.slots)) in found


def _fits(
    entry: Entry, node: Node, ids: list[int], places: dict[int, int], first: int, end: int
) -> bool:
    """Whether what a node has not divided by fits what is left of the key."""
    prefix = entry.parts[0][node.depth :] if node.kind == LEFT else ()
    suffix = entry.parts[-1] if entry.many and node.kind != FREE else ()
    segments = entry.parts[1:-1]
    if node.kind == RIGHT:
        suffix = suffix[: len(suffix) - node.depth]
    elif node.kind == FREE:
        segments = segments[node.depth :]
    need = len(prefix) + len(suffix) + sum(len(segment) for segment in segments)
    if end - first < need or (not entry.many and end - first != need):
        return False
    if not _equal(prefix, ids, first) or not _equal(suffix, ids, end - len(suffix)):
        return False
    first += len(prefix)
    end -= len(suffix)
    for segment in segments:
        at = _place(segment, places, first, end)
        if at < 0:
            return False
        first = at + len(segment)
    return True


def _equal(words: Segment, ids: list[int], at: int) -> bool:
    return all(word in (ANY, ids[at + place]) for place, word in enumerate(words))


def _place(segment: Segment, places: dict[int, int], first: int, end: int) -> int:
    """The first place where a segment fits between two places of the key; -1 for none.

    Bit by bit a word's places say where the segment may begin; all words must agree.
    """
    starts = end - len(segment) - first + 1
    if starts <= 0:
        return -1
    may = (1 << starts) - 1
    for offset, word in enumerate(segment):
        if word != ANY:
            may &= places.get(word, 0) >> (first + offset)
    return first + (may & -may).bit_length() - 1 if may else -1
