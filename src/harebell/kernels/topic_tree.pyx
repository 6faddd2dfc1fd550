"""Patterns of words in a tree of buckets, in C; topic_tree.py says what this does.

A bucket's patterns lie one behind the other in one piece of memory, so looking at them is reading
it from the beginning to the end. One pattern, in `int`s:

    size  slot  many  need | prefix  suffix  segments | words of the prefix | of the suffix |
    for each segment: length  words  and for each word: place in the segment, word

The slot is -1 when a pattern leads to several.
"""

from libc.stdlib cimport free, realloc

cdef void* grown(void* old, size_t octets) except NULL:
    cdef void* new = realloc(old, octets)
    if new == NULL:
        raise MemoryError()
    return new


def canonical(str pattern):
    """The words of a pattern, in the one form of all patterns that mean the same."""
    cdef list words = []
    cdef bint many = False
    if not pattern:
        return words
    for word in pattern.split("."):
        if word == "#":
            many = True
        else:
            if many and word != "*":
                words.append("#")
                many = False
            words.append(word)
    if many:
        words.append("#")
    return words


cdef class Entry:

    def __init__(self, list parts):
        self.parts = tuple(parts)
        self.many = len(parts) > 1
        self.slots = {}

    cdef Py_ssize_t segments(self):
        cdef Py_ssize_t parts = len(self.parts)
        return parts - 2 if parts > 2 else 0


cdef class Node:

    def __cinit__(self, int kind, int depth):
        self.kind = kind
        self.depth = depth
        self.bucket = []
        self.children = {}
        self.segments = {}
        self.stale = True

    def __dealloc__(self):
        free(self.packed)
        free(self.segment)

    cdef tuple step(self, Entry entry):
        cdef tuple words
        if self.kind == FREE:
            return entry.parts[self.depth + 1] if self.depth < entry.segments() else None
        if self.kind == LEFT:
            words = <tuple>entry.parts[0]
            if self.depth < len(words):
                return (words[self.depth],)
            return () if entry.many else None
        words = <tuple>entry.parts[len(entry.parts) - 1]
        return (words[len(words) - 1 - self.depth],) if self.depth < len(words) else ()

    cdef Node child(self, tuple step):
        if len(step) == 0:
            return self.many
        if step[0] == ANY:
            return self.one
        if self.kind != FREE:
            return self.children.get(step[0])
        cdef dict found = self.segments.get(step[0])
        return None if found is None else found.get(step)

    cdef Node grow(self, tuple step):
        cdef Node node = self.child(step)
        if node is not None:
            return node
        if len(step) == 0:
            node = self.many = Node(self.kind + 1, 0)
            return node
        node = Node(self.kind, self.depth + 1)
        if step[0] == ANY:
            self.one = node
        elif self.kind != FREE:
            self.children[step[0]] = node
        else:
            node.segment = <int*>grown(NULL, (2 + 2 * len(step)) * sizeof(int))
            pack_segment(node.segment, step)
            self.segments.setdefault(step[0], {})[step] = node
        return node

    cdef int cut(self, tuple step) except -1:
        cdef dict found
        if len(step) == 0:
            self.many = None
        elif step[0] == ANY:
            self.one = None
        elif self.kind != FREE:
            del self.children[step[0]]
        else:
            found = self.segments[step[0]]
            del found[step]
            if not found:
                del self.segments[step[0]]
        return 0

    cdef int pack(self) except -1:
        """Write the bucket's patterns behind each other."""
        cdef Py_ssize_t total = 0, at = 0
        cdef Entry entry
        cdef tuple part
        for entry in self.bucket:
            total += WORDS
            for part in entry.parts:
                total += 2 + 2 * len(part)
        if total:
            self.packed = <int*>grown(self.packed, total * sizeof(int))
        for entry in self.bucket:
            at += self.pack_one(self.packed + at, entry)
        self.packed_size = at
        self.stale = False
        return 0

    cdef Py_ssize_t pack_one(self, int* into, Entry entry) except -1:
        cdef tuple prefix = <tuple>entry.parts[0] if self.kind == LEFT else ()
        cdef tuple suffix = ()
        cdef tuple part
        cdef Py_ssize_t parts = len(entry.parts), at = WORDS, place
        cdef Py_ssize_t first = 1, need = 0
        if entry.many and self.kind != FREE:
            suffix = <tuple>entry.parts[parts - 1]
        if self.kind == LEFT:
            prefix = prefix[self.depth:]
        elif self.kind == RIGHT:
            suffix = suffix[: len(suffix) - self.depth]
        else:
            first += self.depth
        into[SLOT] = <int>next(iter(entry.slots)) if len(entry.slots) == 1 else -1
        into[MORE] = entry.many
        into[PREFIX] = <int>len(prefix)
        into[SUFFIX] = <int>len(suffix)
        into[SEGMENTS] = <int>(parts - 1 - first if parts - 1 > first else 0)
        need = len(prefix) + len(suffix)
        for word in prefix:
            into[at] = word
            at += 1
        for word in suffix:
            into[at] = word
            at += 1
        for place in range(first, parts - 1):
            part = <tuple>entry.parts[place]
            need += len(part)
            at += pack_segment(into + at, part)
        into[NEED] = <int>need
        into[SIZE] = <int>at
        return at


cdef Py_ssize_t pack_segment(int* into, tuple segment) except -1:
    cdef Py_ssize_t at = 2, place
    cdef int word
    for place in range(len(segment)):
        word = segment[place]
        if word != ANY:
            into[at] = <int>place
            into[at + 1] = word
            at += 2
    into[0] = <int>len(segment)
    into[1] = <int>((at - 2) // 2)
    return at
