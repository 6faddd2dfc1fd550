"""Find the patterns of words that match a routing key (AMQP 0-9-1 3.1.3.3, topic exchanges).

Patterns and keys are written by peers, so the work must stay small whatever they write. A key
matches when it begins with the pattern's prefix, ends with its suffix, and has every segment
between them in this order (`topic_tree.py` draws prefix, suffix and segments). The first place
where a segment matches is always the right one: it leaves the most words for the segments behind
it. So a pattern is read once from left to right without going back, and no node of the tree is
visited twice for a key. `topic_matching.pyx` beside this file is the same, compiled.
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
    """Patterns, each with the numbers (slots) of its bindings; finds the slots for a key.

    Attributes:
        cost: nodes, patterns and segments that the last match examined.
    """

    def __init__(self) -> None:
        self.cost = 0
        self._root = Node(LEFT, 0)
        self._entries: dict[str, Entry] = {}
        self._ids: dict[str, int] = {}
        self._uses: list[int] = [0]
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return the number of different patterns."""
        return len(self._entries)

    # --- patterns -------------------------------------------------------------------------------

    def add(self, pattern: str, slot: int) -> None:
        """Add a pattern for a slot >= 0; the same pattern added twice has to be removed twice."""
        words = canonical(pattern)
        name = ".".join(words)
        entry = self._entries.get(name)
        if entry is None:
            entry = self._entries[name] = Entry(self._numbered(words))
            self._insert(entry)
        entry.slots[slot] = entry.slots.get(slot, 0) + 1

    def remove(self, pattern: str, slot: int) -> None:
        """Remove a pattern that `add` added."""
        words = canonical(pattern)
        name = ".".join(words)
        entry = self._entries[name]
        if entry.slots[slot] > 1:
            entry.slots[slot] -= 1
            return
        del entry.slots[slot]
        if not entry.slots:
            del self._entries[name]
            self._take_out(entry)
            self._release(words)

    def _numbered(self, words: list[str]) -> list[Segment]:
        """Return the parts between `#`, with a number for each word."""
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

    def _release(self, words: list[str]) -> None:
        """Free the numbers of words that no pattern has any more."""
        for word in words:
            number = self._ids.get(word) if word not in (ONE, MANY) else None
            if number is not None:
                self._uses[number] -= 1
                if self._uses[number] == 0:
                    del self._ids[word]
                    self._free.append(number)

    def _insert(self, entry: Entry) -> None:
        """Put a pattern into the bucket that its words lead to."""
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
            # All patterns may lead to the same child, which is too large then itself.
            node = self._divide(node)

    def _divide(self, node: Node) -> Node:
        """Distribute a bucket's patterns to children; return the fullest child."""
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

    def _take_out(self, entry: Entry) -> None:
        """Remove a pattern from its bucket, and a branch that only it has."""
        node = self._root
        node.held -= 1
        while node is not entry.node:
            step = node.step(entry)
            assert step is not None, "a pattern that was added is in a bucket"
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
            # Divided nodes are not joined again: an empty tree begins as one bucket.
            self._root = Node(LEFT, 0)

    # --- matching -------------------------------------------------------------------------------

    def match(self, key: str) -> list[int]:
        """Return the slots of all patterns that match a key, each once."""
        words = key.split(".") if key else []
        ids = [self._ids.get(word, UNKNOWN) for word in words]
        places: dict[int, int] = {}
        for place, number in enumerate(ids):
            if number != UNKNOWN:
                places[number] = places.get(number, 0) | 1 << place
        matched: dict[int, None] = {}
        cost = 0
        todo = [(self._root, 0, len(ids))]
        while todo:
            node, first, end = todo.pop()
            cost += 1
            for entry in node.bucket:
                cost += 1
                if _adds_slots(entry, matched) and _fits(entry, node, ids, places, first, end):
                    matched.update(dict.fromkeys(entry.slots))
            if not node.divided:
                continue
            if node.many is not None:
                todo.append((node.many, first, end))
            if node.kind == FREE:
                # Only segments whose first word is in the rest of the key can match.
                for number, bits in places.items():
                    if number in node.segments and bits >> first:
                        for segment, child in node.segments[number].items():
                            cost += 1
                            place = _place(segment, places, first, end)
                            if place >= 0:
                                todo.append((child, place + len(segment), end))
            elif first < end:
                left = node.kind == LEFT
                rest = (first + 1, end) if left else (first, end - 1)
                if node.one is not None:
                    todo.append((node.one, *rest))
                number = ids[first if left else end - 1]
                if number in node.children:
                    todo.append((node.children[number], *rest))
        self.cost = cost
        return list(matched)


def _adds_slots(entry: Entry, matched: dict[int, None]) -> bool:
    """True unless the only slot of a pattern has matched by another pattern."""
    return len(entry.slots) != 1 or next(iter(entry.slots)) not in matched


def _fits(
    entry: Entry, node: Node, ids: list[int], places: dict[int, int], first: int, end: int
) -> bool:
    """True if the words of a pattern behind its node match the rest of the key."""
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
        place = _place(segment, places, first, end)
        if place < 0:
            return False
        first = place + len(segment)
    return True


def _equal(words: Segment, ids: list[int], start: int) -> bool:
    """True if words, some of them `*`, match the key from an index on."""
    return all(word in (ANY, ids[start + place]) for place, word in enumerate(words))


def _place(segment: Segment, places: dict[int, int], first: int, end: int) -> int:
    """Return the first place where a segment matches between two places of the key, or -1.

    The places of a word are a bit map. Shifted by the word's offset in the segment, it has a bit
    for each place where the segment may begin; the bits that all words have are matches.
    """
    starts = end - len(segment) - first + 1
    if starts <= 0:
        return -1
    matches = (1 << starts) - 1
    for offset, word in enumerate(segment):
        if word != ANY:
            matches &= places.get(word, 0) >> (first + offset)
    # `x & -x` keeps the lowest bit only.
    return first + (matches & -matches).bit_length() - 1 if matches else -1
