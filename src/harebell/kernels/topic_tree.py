"""Patterns of words in a tree of buckets, as `topics.py` reads it.

A pattern is brought into one form first: of neighbouring `*` and `#` the `*` come first, then one
`#`. What stands between two `#` is a segment, and begins with a word:

    a.*.#.#.b.c.#.*.d.*        prefix a *     segments (b c *)     suffix d *

The tree divides a bucket that has become too large: by the words of the prefix, then by those of
the suffix from the end, then segment by segment. Behind the first `#` buckets may be larger: a key
has few ways through words, but through patterns with `#` it has many. `topic_tree.pyx` beside this
file is the same, compiled.
"""

from __future__ import annotations

ONE = "*"
MANY = "#"

ANY = 0
UNKNOWN = -1
BUCKET = 128
BEHIND = 1_024
LEFT, RIGHT, FREE = range(3)

Segment = tuple[int, ...]


def canonical(pattern: str) -> list[str]:
    """The words of a pattern, in the one form of all patterns that mean the same."""
    words: list[str] = []
    many = False
    for word in pattern.split(".") if pattern else ():
        if word == MANY:
            many = True
        else:
            if many and word != ONE:
                words.append(MANY)
                many = False
            words.append(word)
    if many:
        words.append(MANY)
    return words


class Entry:
    """All that is bound with patterns that mean the same."""

    __slots__ = ("many", "need", "node", "parts", "slots")

    def __init__(self, parts: list[Segment]) -> None:
        self.parts = parts
        self.many = len(parts) > 1
        self.need = sum(len(part) for part in parts)
        self.slots: dict[int, int] = {}
        self.node: Node | None = None

    def segments(self) -> int:
        """How many stand between two `#`."""
        return max(len(self.parts) - 2, 0)


class Node:
    """Patterns that agree in what was divided by so far.

    A bucket until it is divided. Afterwards `bucket` has no more than the one pattern that has
    nothing left to divide by.
    """

    __slots__ = (
        "bucket",
        "children",
        "depth",
        "divided",
        "held",
        "kind",
        "many",
        "one",
        "segments",
    )

    def __init__(self, kind: int, depth: int) -> None:
        self.kind = kind
        self.depth = depth
        self.held = 0
        self.divided = False
        self.bucket: list[Entry] = []
        self.children: dict[int, Node] = {}
        self.segments: dict[int, dict[Segment, Node]] = {}
        self.one: Node | None = None
        self.many: Node | None = None

    def step(self, entry: Entry) -> Segment | None:
        """What leads a pattern on: a word, nothing for `#`, a segment; None when it ends here."""
        if self.kind == FREE:
            return entry.parts[self.depth + 1] if self.depth < entry.segments() else None
        if self.kind == LEFT:
            if self.depth < len(entry.parts[0]):
                return (entry.parts[0][self.depth],)
            return () if entry.many else None
        suffix = entry.parts[-1]
        return (suffix[-1 - self.depth],) if self.depth < len(suffix) else ()

    def child(self, step: Segment) -> Node | None:
        """Where a step leads."""
        if not step:
            return self.many
        if step[0] == ANY:
            return self.one
        if self.kind != FREE:
            return self.children.get(step[0])
        return self.segments.get(step[0], {}).get(step)

    def grow(self, step: Segment) -> Node:
        """Where a step leads, made when it is missing."""
        node = self.child(step)
        if node is None:
            if not step:
                node = self.many = Node(self.kind + 1, 0)
            else:
                node = Node(self.kind, self.depth + 1)
                if step[0] == ANY:
                    self.one = node
                elif self.kind != FREE:
                    self.children[step[0]] = node
                else:
                    self.segments.setdefault(step[0], {})[step] = node
        return node

    def cut(self, step: Segment) -> None:
        """Forget where a step led."""
        if not step:
            self.many = None
        elif step[0] == ANY:
            self.one = None
        elif self.kind != FREE:
            del self.children[step[0]]
        else:
            del self.segments[step[0]][step]
            if not self.segments[step[0]]:
                del self.segments[step[0]]
