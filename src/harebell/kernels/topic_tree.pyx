"""Patterns of words in a tree of buckets, in C; see topic_tree.py.

A bucket's patterns are stored one after the other in one block of memory, which is read from the
beginning to the end. One pattern, in `int`s:

    size  slot  many  need | prefix  suffix  segments | words of the prefix | of the suffix |
    for each segment: length  words  and for each word: place in the segment, word

The slot is -1 if a pattern leads to several numbers.
"""

from libc.stdlib cimport free, realloc
from libc.string cimport memmove

cdef void* grown(void* old, size_t octets) except NULL:
    cdef void* new = realloc(old, octets)
    if new == NULL:
        raise MemoryError()
    return new


def canonical(str pattern):
    """Return the words of a pattern in normal form: equivalent patterns have the same words."""
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

    cdef int put(self, Entry entry) except -1:
        """Append a pattern to the bucket."""
        cdef Py_ssize_t size = WORDS, room
        cdef tuple part
        for part in entry.parts:
            size += 2 + 2 * len(part)
        if self.packed_size + size > self.packed_room:
            room = max(2 * self.packed_room, self.packed_size + size)
            self.packed = <int*>grown(self.packed, room * sizeof(int))
            self.packed_room = room
        self.packed_size += self.pack_one(self.packed + self.packed_size, entry)
        self.bucket.append(entry)
        entry.node = self
        return 0

    cdef int take(self, Entry entry) except -1:
        """Remove a pattern."""
        cdef Py_ssize_t index = self.bucket.index(entry)
        cdef int* at = self.packed_at(index)
        cdef Py_ssize_t size = at[SIZE]
        cdef Py_ssize_t behind = self.packed + self.packed_size - at - size
        del self.bucket[index]
        memmove(at, at + size, behind * sizeof(int))
        self.packed_size -= size
        return 0

    cdef int empty(self) except -1:
        """Forget all patterns: they are in other buckets now."""
        free(self.packed)
        self.packed = NULL
        self.packed_size = self.packed_room = 0
        self.bucket = []
        return 0

    cdef int mark(self, Entry entry) except -1:
        """Change where a pattern leads."""
        self.packed_at(self.bucket.index(entry))[SLOT] = only_slot(entry)
        return 0

    cdef int* packed_at(self, Py_ssize_t index) noexcept:
        cdef int* at = self.packed
        for _ in range(index):
            at += at[SIZE]
        return at

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
        into[SLOT] = only_slot(entry)
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


cdef int only_slot(Entry entry) except? -2:
    """Return the number that a pattern leads to; -1 if it leads to several."""
    return <int>next(iter(entry.slots)) if len(entry.slots) == 1 else -1


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
