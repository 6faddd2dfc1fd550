"""Find the patterns of words that match a routing key, in C; see topics.py.

The places of a word in the key are a bit map, so a segment is searched at 64 places at a time.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.ref cimport PyObject
from libc.stdlib cimport free
from libc.string cimport memset

from harebell.kernels.topic_tree cimport (
    ANY, BEHIND, BUCKET, FREE, LEFT, MORE, NEED, PREFIX, SEGMENTS, SIZE, SLOT, SUFFIX, UNKNOWN,
    WORDS, Entry, Node, grown,
)

from harebell.kernels.topic_tree import canonical

cdef extern from *:
    """
    #define harebell_lowest(bits) __builtin_ctzll(bits)
    """
    int harebell_lowest(unsigned long long bits) noexcept nogil

cdef enum:
    FIRST_ROOM = 64


cdef inline bint equal(int* words, int* key, Py_ssize_t count) noexcept:
    """True if words match those of the key; tested in groups of eight, to save branches."""
    cdef Py_ssize_t at = 0, place
    cdef int differs
    while at + 8 <= count:
        differs = 0
        for place in range(8):
            differs |= (words[at + place] != ANY) & (words[at + place] != key[at + place])
        if differs:
            return False
        at += 8
    for place in range(at, count):
        if words[place] != ANY and words[place] != key[place]:
            return False
    return True


cdef inline Py_ssize_t bucket_limit(Node node) noexcept:
    """Return how many patterns a bucket may have."""
    return BUCKET if node.kind == LEFT else BEHIND


cdef class TopicIndex:
    """Patterns and their numbers; finds the numbers for a routing key. See topics.py."""

    cdef readonly long long cost
    cdef object _root
    cdef dict _entries
    cdef dict _ids
    cdef list _uses
    cdef list _free
    cdef int* _local
    cdef Py_ssize_t _local_room
    cdef unsigned int* _stamps
    cdef Py_ssize_t _stamps_room
    cdef unsigned int _stamp
    cdef int* _key
    cdef Py_ssize_t _key_room
    cdef unsigned long long* _places
    cdef Py_ssize_t _places_room
    cdef Py_ssize_t _stride
    cdef list _key_ids
    cdef list _distinct

    def __cinit__(self):
        self.cost = 0
        self._root = Node(LEFT, 0)
        self._entries = {}
        self._ids = {}
        self._uses = [0]
        self._free = []
        self._stamp = 0

    def __dealloc__(self):
        free(self._local)
        free(self._stamps)
        free(self._key)
        free(self._places)

    def __len__(self):
        return len(self._entries)

    # --- what is bound --------------------------------------------------------------------------

    cpdef add(self, str pattern, Py_ssize_t slot):
        """Add a pattern for a number >= 0; the same pattern added twice has to be removed twice."""
        cdef list words = canonical(pattern)
        cdef str name = ".".join(words)
        cdef Entry entry = self._entries.get(name)
        cdef Py_ssize_t room
        if slot >= self._stamps_room:
            room = max(2 * self._stamps_room, slot + 1, <Py_ssize_t>FIRST_ROOM)
            self._stamps = <unsigned int*>grown(self._stamps, room * sizeof(unsigned int))
            memset(
                self._stamps + self._stamps_room,
                0,
                (room - self._stamps_room) * sizeof(unsigned int),
            )
            self._stamps_room = room
        if entry is None:
            entry = self._entries[name] = Entry(self._numbered(words))
            entry.slots[slot] = 1
            self._file(entry)
            return
        known = entry.slots.get(slot, 0)
        entry.slots[slot] = known + 1
        if not known:
            entry.node.mark(entry)

    cpdef remove(self, str pattern, Py_ssize_t slot):
        """Remove a pattern that `add` added."""
        cdef list words = canonical(pattern)
        cdef str name = ".".join(words)
        cdef Entry entry = self._entries[name]
        if entry.slots[slot] > 1:
            entry.slots[slot] -= 1
            return
        del entry.slots[slot]
        if entry.slots:
            entry.node.mark(entry)
            return
        del self._entries[name]
        self._unfile(entry)
        self._forget(words)

    def _numbered(self, list words):
        cdef list parts = [[]]
        cdef Py_ssize_t room
        for word in words:
            if word == "#":
                parts.append([])
            elif word == "*":
                (<list>parts[len(parts) - 1]).append(ANY)
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
                (<list>parts[len(parts) - 1]).append(number)
        if len(self._uses) > self._local_room:
            room = 2 * len(self._uses) + FIRST_ROOM
            self._local = <int*>grown(self._local, room * sizeof(int))
            memset(self._local, 0, room * sizeof(int))
            self._local_room = room
        return [tuple(part) for part in parts]

    def _forget(self, list words):
        for word in words:
            number = self._ids.get(word) if word != "*" and word != "#" else None
            if number is not None:
                self._uses[number] -= 1
                if self._uses[number] == 0:
                    del self._ids[word]
                    self._free.append(number)

    def _file(self, Entry entry):
        cdef Node node = self._root
        cdef tuple step
        while True:
            node.held += 1
            step = node.step(entry) if node.divided else None
            if step is None:
                break
            node = node.grow(step)
        node.put(entry)
        while not node.divided and len(node.bucket) > bucket_limit(node):
            node = self._divide(node)

    def _divide(self, Node node):
        cdef list bucket = node.bucket
        cdef Node fullest = node, child
        cdef Entry entry
        cdef tuple step
        node.divided = True
        node.empty()
        for entry in bucket:
            step = node.step(entry)
            if step is None:
                node.put(entry)
                continue
            child = node.grow(step)
            child.held += 1
            child.put(entry)
            if fullest is node or child.held > fullest.held:
                fullest = child
        return fullest

    def _unfile(self, Entry entry):
        cdef Node node = self._root, child
        cdef tuple step
        node.held -= 1
        while node is not entry.node:
            step = node.step(entry)
            child = node.child(step)
            child.held -= 1
            if child.held == 0:
                node.cut(step)
                break
            node = child
        else:
            node.take(entry)
        entry.node = None
        if (<Node>self._root).held == 0:
            self._root = Node(LEFT, 0)

    # --- what fits ------------------------------------------------------------------------------

    cpdef list match(self, str key):
        """Return the numbers of all patterns that match a key, each once."""
        cdef list found = []
        cdef list words = key.split(".") if key else []
        cdef Py_ssize_t count = len(words)
        self.cost = 0
        self._stamp += 1
        if self._stamp == 0:
            memset(self._stamps, 0, self._stamps_room * sizeof(unsigned int))
            self._stamp = 1
        self._read_key(words, count)
        try:
            self._visit(self._root, 0, count, found)
        finally:
            for number in self._distinct:
                self._local[<Py_ssize_t>number] = 0
        return found

    cdef int _read_key(self, list words, Py_ssize_t count) except -1:
        """Number the words of the key, and store the places of each."""
        cdef Py_ssize_t at, room
        cdef int number
        cdef PyObject* known
        cdef list ids = []
        cdef list distinct = []
        self._key_ids = ids
        self._distinct = distinct
        if count > self._key_room:
            self._key = <int*>grown(self._key, count * sizeof(int))
            self._key_room = count
        for at in range(count):
            known = PyDict_GetItem(self._ids, words[at])
            if known == NULL:
                self._key[at] = UNKNOWN
                ids.append(UNKNOWN)
                continue
            number = <object>known
            ids.append(<object>known)
            self._key[at] = number
            if self._local[number] == 0:
                distinct.append(<object>known)
                self._local[number] = <int>len(distinct)
        # One more word, for reads across the end; the first row is that of absent words.
        self._stride = (count >> 6) + 2
        room = (len(distinct) + 1) * self._stride
        if room > self._places_room:
            self._places = <unsigned long long*>grown(
                self._places, room * sizeof(unsigned long long)
            )
            self._places_room = room
        memset(self._places, 0, room * sizeof(unsigned long long))
        for at in range(count):
            number = self._key[at]
            if number != UNKNOWN:
                self._places[self._local[number] * self._stride + (at >> 6)] |= 1ULL << (at & 63)
        return 0

    cdef int _visit(self, Node node, Py_ssize_t first, Py_ssize_t end, list found) except -1:
        cdef Py_ssize_t after, before, at
        cdef PyObject* known
        cdef Node child
        cdef bint left
        self.cost += 1
        if node.bucket:
            self._look(node, first, end, found)
        if not node.divided:
            return 0
        if node.kind == FREE:
            for number in self._distinct:
                known = PyDict_GetItem(node.segments, number)
                if known != NULL and self._stands_behind(number, first):
                    for child in (<dict>known).values():
                        self.cost += 1
                        at = self._place(child.segment, first, end)
                        if at >= 0:
                            self._visit(child, at + child.segment[0], end, found)
        elif first < end:
            left = node.kind == LEFT
            after = first + 1 if left else first
            before = end if left else end - 1
            number = self._key_ids[first if left else end - 1]
            known = PyDict_GetItem(node.children, number)
            if known != NULL:
                self._visit(<Node>known, after, before, found)
            if node.one is not None:
                self._visit(node.one, after, before, found)
        if node.many is not None:
            self._visit(node.many, first, end, found)
        return 0

    cdef bint _stands_behind(self, int number, Py_ssize_t first):
        """True if a word is at a place of the key or behind it."""
        cdef unsigned long long* row = self._places + self._local[number] * self._stride
        cdef Py_ssize_t at = first >> 6
        # A number has 64 places: shift out those before `first`, then search whole numbers.
        if row[at] >> (first & 63):
            return True
        for at in range(at + 1, self._stride):
            if row[at]:
                return True
        return False

    cdef int _look(self, Node node, Py_ssize_t first, Py_ssize_t end, list found) except -1:
        """Test every pattern of a bucket."""
        cdef int* pattern
        cdef int* stop
        cdef Py_ssize_t index = 0, room = end - first
        pattern = node.packed
        stop = pattern + node.packed_size
        while pattern < stop:
            self.cost += 1
            # A slot with the stamp of this key was found already, by another pattern.
            if not (pattern[SLOT] >= 0 and self._stamps[pattern[SLOT]] == self._stamp):
                if (room >= pattern[NEED] if pattern[MORE] else room == pattern[NEED]):
                    if self._fits(pattern, first, end):
                        self._take(pattern[SLOT], node, index, found)
            pattern += pattern[SIZE]
            index += 1
        return 0

    cdef int _take(self, int slot, Node node, Py_ssize_t index, list found) except -1:
        cdef Entry entry
        if slot >= 0:
            self._stamps[slot] = self._stamp
            found.append(slot)
            return 0
        entry = node.bucket[index]
        for each in entry.slots:
            slot = each
            if self._stamps[slot] != self._stamp:
                self._stamps[slot] = self._stamp
                found.append(each)
        return 0

    cdef bint _fits(self, int* pattern, Py_ssize_t first, Py_ssize_t end) noexcept:
        cdef int* word = pattern + WORDS
        cdef Py_ssize_t at
        if not equal(word, self._key + first, pattern[PREFIX]):
            return False
        word += pattern[PREFIX]
        first += pattern[PREFIX]
        end -= pattern[SUFFIX]
        if not equal(word, self._key + end, pattern[SUFFIX]):
            return False
        word += pattern[SUFFIX]
        for at in range(pattern[SEGMENTS]):
            first = self._place(word, first, end)
            if first < 0:
                return False
            first += word[0]
            word += 2 + 2 * word[1]
        return True

    cdef Py_ssize_t _place(self, int* segment, Py_ssize_t first, Py_ssize_t end) noexcept:
        """Return the first place where a segment matches between two places of the key, or -1."""
        cdef Py_ssize_t starts = end - segment[0] - first + 1
        cdef Py_ssize_t at, place
        cdef unsigned long long may
        cdef unsigned long long* row
        cdef int bits
        while starts > 0:
            may = ~0ULL if starts >= 64 else (1ULL << starts) - 1
            for at in range(segment[1]):
                place = first + segment[2 + 2 * at]
                row = self._places + self._local[segment[3 + 2 * at]] * self._stride + (place >> 6)
                bits = <int>(place & 63)
                if bits:
                    may &= row[0] >> bits | row[1] << (64 - bits)
                else:
                    may &= row[0]
                if may == 0:
                    break
            if may:
                return first + harebell_lowest(may)
            first += 64
            starts -= 64
        return -1
