"""Patterns of words in a tree of buckets, in C; see topic_tree.py.

A bucket's patterns are stored one after the other in one block of memory, which is read from the
beginning to the end. One pattern, in `int`s:

    size  slot  many  need | prefix  suffix  segments | words of the prefix | of the suffix |
    for each segment: length  words  and for each word: place in the segment, word

The slot is -1 if a pattern leads to several numbers.
"""

cimport cython
from libc.stdlib cimport free, realloc
from libc.string cimport memmove

# realloc and not lists: a match reads numbers one after the other, without objects in between.
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


# Neither class takes part in garbage collection, as the tree has no cycles: an entry does not know
# its node. Without the collector's header there are 32 bytes less for each binding.
@cython.no_gc
cdef class Entry:

    def __cinit__(self, str name, int slot):
        self.name = name
        self.slot = slot
        self.uses = 1

    def __dealloc__(self):
        free(self.packed)

    cdef int add(self, int slot) except -1:
        """Count one more use of a slot."""
        if slot == self.slot:
            self.uses += 1
            return 0
        if self.more is None:
            # Most patterns have one slot, so the dictionary is for the others only.
            self.more = {self.slot: self.uses}
            self.slot = -1
        self.more[slot] = self.more.get(slot, 0) + 1
        return 0

    cdef int drop(self, int slot) except -1:
        """Count one use of a slot less; return the uses of all slots that are left, 0 or 1."""
        cdef int uses
        if self.more is None:
            self.uses -= 1
            return self.uses > 0
        uses = self.more[slot]
        if uses > 1:
            self.more[slot] = uses - 1
            return 1
        del self.more[slot]
        if len(self.more) == 1:
            for only, left in self.more.items():
                self.slot = only
                self.uses = left
            self.more = None
        return 1


cdef inline Py_ssize_t segment_count(tuple parts) noexcept:
    """Return how many segments a pattern has."""
    return len(parts) - 2 if len(parts) > 2 else 0


@cython.no_gc
cdef class Node:

    def __cinit__(self, int kind, int depth):
        self.kind = kind
        self.depth = depth

    def __dealloc__(self):
        free(self.packed)
        free(self.segment)

    cdef tuple step(self, tuple parts):
        cdef tuple words
        if self.kind == FREE:
            return parts[self.depth + 1] if self.depth < segment_count(parts) else None
        if self.kind == LEFT:
            words = <tuple>parts[0]
            if self.depth < len(words):
                return (words[self.depth],)
            return () if len(parts) > 1 else None
        words = <tuple>parts[len(parts) - 1]
        return (words[len(words) - 1 - self.depth],) if self.depth < len(words) else ()

    cdef object child(self, tuple step):
        if len(step) == 0:
            return self.many
        if step[0] == ANY:
            return self.one
        if self.kind != FREE:
            return None if self.children is None else self.children.get(step[0])
        cdef dict by_step = None if self.segments is None else self.segments.get(step[0])
        return None if by_step is None else by_step.get(step)

    cdef Node grow(self, tuple step):
        """Create the child of a branch."""
        cdef Node node
        if len(step) == 0:
            node = self.many = Node(self.kind + 1, 0)
            return node
        node = Node(self.kind, self.depth + 1)
        if step[0] == ANY:
            self.one = node
        elif self.kind != FREE:
            if self.children is None:
                self.children = {}
            self.children[step[0]] = node
        else:
            node.segment = <int*>grown(NULL, (2 + 2 * len(step)) * sizeof(int))
            pack_segment(node.segment, step)
            if self.segments is None:
                self.segments = {}
            self.segments.setdefault(step[0], {})[step] = node
        return node

    cdef int cut(self, tuple step) except -1:
        cdef dict by_step
        if len(step) == 0:
            self.many = None
        elif step[0] == ANY:
            self.one = None
        elif self.kind != FREE:
            del self.children[step[0]]
        else:
            by_step = self.segments[step[0]]
            del by_step[step]
            if not by_step:
                del self.segments[step[0]]
        return 0

    cdef int put(self, Entry entry, tuple parts) except -1:
        """Append a pattern to the bucket."""
        cdef Py_ssize_t size = packed_size(parts), room
        if self.packed_size + size > self.packed_room:
            room = max(2 * self.packed_room, self.packed_size + size)
            self.packed = <int*>grown(self.packed, room * sizeof(int))
            self.packed_room = room
        self.packed_size += pack_one(
            self.packed + self.packed_size, entry, parts, self.kind, self.depth)
        if self.bucket is None:
            self.bucket = []
        self.bucket.append(entry)
        return 0

    cdef int take(self, Entry entry) except -1:
        """Remove a pattern."""
        cdef Py_ssize_t index = self.bucket.index(entry)
        cdef int* pattern = self.packed_at(index)
        cdef Py_ssize_t size = pattern[SIZE]
        cdef Py_ssize_t behind = self.packed + self.packed_size - pattern - size
        del self.bucket[index]
        memmove(pattern, pattern + size, behind * sizeof(int))
        self.packed_size -= size
        return 0

    cdef int empty(self) except -1:
        """Forget all patterns: they are in other buckets now."""
        free(self.packed)
        self.packed = NULL
        self.packed_size = self.packed_room = 0
        self.bucket = None
        return 0

    cdef int mark(self, Entry entry) except -1:
        """Store whether a pattern has one slot or several."""
        self.packed_at(self.bucket.index(entry))[SLOT] = entry.slot
        return 0

    cdef int* packed_at(self, Py_ssize_t index) noexcept:
        # Sizes differ, so patterns are counted off. This is for changes of bindings only; a match
        # reads the block from its beginning anyway.
        cdef int* pattern = self.packed
        for _ in range(index):
            pattern += pattern[SIZE]
        return pattern


cdef Py_ssize_t packed_size(tuple parts) except -1:
    """Return how many numbers a pattern has at most."""
    cdef Py_ssize_t size = WORDS
    cdef tuple part
    for part in parts:
        size += 2 + 2 * len(part)
    return size


cdef Py_ssize_t pack_one(int* into, Entry entry, tuple parts, int kind, int depth) except -1:
    """Write a pattern for a node of a kind and a depth; return its size in numbers."""
    cdef bint many = len(parts) > 1
    cdef tuple prefix = <tuple>parts[0] if kind == LEFT else ()
    cdef tuple suffix = ()
    cdef tuple part
    cdef Py_ssize_t at = WORDS, place
    cdef Py_ssize_t first = 1, need = 0
    # Words that the tree has divided by led to this node, so they are not compared again: the
    # prefix is left out behind the first `#`, and the suffix in the segments.
    if many and kind != FREE:
        suffix = <tuple>parts[len(parts) - 1]
    if kind == LEFT:
        prefix = prefix[depth:]
    elif kind == RIGHT:
        suffix = suffix[: len(suffix) - depth]
    else:
        first += depth
    into[SLOT] = entry.slot
    into[MORE] = many
    into[PREFIX] = <int>len(prefix)
    into[SUFFIX] = <int>len(suffix)
    into[SEGMENTS] = <int>(len(parts) - 1 - first if len(parts) - 1 > first else 0)
    need = len(prefix) + len(suffix)
    for word in prefix:
        into[at] = word
        at += 1
    for word in suffix:
        into[at] = word
        at += 1
    for place in range(first, len(parts) - 1):
        part = <tuple>parts[place]
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
        # A `*` in a segment matches any word: only its place counts, in the length of the segment.
        if word != ANY:
            into[at] = <int>place
            into[at + 1] = word
            at += 2
    into[0] = <int>len(segment)
    into[1] = <int>((at - 2) // 2)
    return at
