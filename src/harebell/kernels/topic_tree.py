"""Patterns of words in a tree of buckets, as `topic_matching.py` reads it.

A pattern is brought into one form first: of neighbouring `*` and `#` the `*` come first, then one
`#`. The words between two `#` are a segment, which begins with a word other than `*`:

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
    """Return the words of a pattern in normal form: equivalent patterns have the same words."""
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
    """A pattern in normal form, and the bindings that have it or an equivalent one.

    Args:
        parts: the numbers of the words between its `#`: prefix, segments, suffix.

    Attributes:
        many: whether the pattern has a `#`.
        need: how many words a key has at least.
        slots: how often the pattern was added, by slot.
        node: the node whose bucket has it.
    """

    __slots__ = ("many", "need", "node", "parts", "slots")

    def __init__(self, parts: list[Segment]) -> None:
        self.parts = parts
        self.many = len(parts) > 1
        self.need = sum(len(part) for part in parts)
        self.slots: dict[int, int] = {}
        self.node: Node | None = None

    def segments(self) -> int:
        """Return how many segments there are."""
        return max(len(self.parts) - 2, 0)


class Node:
    """Patterns with the same words up to a depth.

    A node is a bucket until it is divided. Afterwards `bucket` has at most one pattern, which has
    no further word to divide by.

    Args:
        kind: LEFT in the prefix, RIGHT in the suffix, FREE in the segments.
        depth: how many words, or segments, of the kind lead to the node.
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
        """Return the branch of a pattern: a word, a segment, () for `#`; None when it ends here."""
        if self.kind == FREE:
            return entry.parts[self.depth + 1] if self.depth < entry.segments() else None
        if self.kind == LEFT:
            if self.depth < len(entry.parts[0]):
                return (entry.parts[0][self.depth],)
            return () if entry.many else None
        suffix = entry.parts[-1]
        return (suffix[-1 - self.depth],) if self.depth < len(suffix) else ()

    def child(self, step: Segment) -> Node | None:
        """Return the child of a branch, if there is one."""
        if not step:
            return self.many
        if step[0] == ANY:
            return self.one
        if self.kind != FREE:
            return self.children.get(step[0])
        return self.segments.get(step[0], {}).get(step)

    def grow(self, step: Segment) -> Node:
        """Return the child of a branch; create a missing one."""
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
        """Remove the child of a branch."""
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
