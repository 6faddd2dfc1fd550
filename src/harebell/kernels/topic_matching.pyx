"""Find the patterns of words that match a routing key, in C; see topic_matching.py.

The places of a word in the key are a bit map, so a segment is searched at 64 places at a time:

    key        a  b  a  c  a  b        segment  a b       the segment may begin at
    places a   1  0  1  0  1  0        a >> 0             1  0  1  0  1  0
    places b   0  1  0  0  0  1        b >> 1             1  0  0  0  1  0     both: 0 and 4

The slots of a match are marked with the number of the match (`_stamps`), so that no slot is
returned twice and nothing has to be cleared between two keys.
"""

from cpython.dict cimport PyDict_GetItem
from cpython.list cimport PyList_GET_ITEM
from cpython.ref cimport PyObject
from libc.stdlib cimport free
from libc.string cimport memset

from harebell.kernels.topic_tree cimport (
    ANY, BEHIND, BUCKET, FREE, LEFT, MORE, NEED, PREFIX, SEGMENTS, SIZE, SLOT, SUFFIX, UNKNOWN,
    WORDS, Entry, Node, grown, pack_one, packed_size,
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
    """True if words match those of the key, some of them being `*`."""
    cdef Py_ssize_t group = 0, place
    cdef int differs
    # Eight words with one branch: most patterns of a bucket differ somewhere, and a branch for each
    # word would be predicted badly. memcmp cannot be used, as ANY matches every word.
    while group + 8 <= count:
        differs = 0
        for place in range(8):
            differs |= (words[group + place] != ANY) & (words[group + place] != key[group + place])
        if differs:
            return False
        group += 8
    for place in range(group, count):
        if words[place] != ANY and words[place] != key[place]:
            return False
    return True


cdef inline int take(
    TopicIndex index, int* pattern, Entry entry, Py_ssize_t first, Py_ssize_t end, list matched
) except -1:
    """Take the slots of a pattern if it matches.

    It is no method: C could not put it into the loop over a bucket.
    """
    cdef int slot = pattern[SLOT]
    cdef Py_ssize_t room = end - first
    # A slot with the stamp of this key was matched already, by another pattern.
    if slot >= 0 and index._stamps[slot] == index._stamp:
        return 0
    if room < pattern[NEED] or (not pattern[MORE] and room != pattern[NEED]):
        return 0
    if not index._fits(pattern, first, end):
        return 0
    if slot >= 0:
        index._stamps[slot] = index._stamp
        matched.append(slot)
        return 0
    for each in entry.more:
        slot = each
        if index._stamps[slot] != index._stamp:
            index._stamps[slot] = index._stamp
            matched.append(each)
    return 0


# A routing key reaches few nodes by words, and many by `#`, so buckets behind `#` are larger: see
# topic_tree.py.
cdef inline Py_ssize_t bucket_limit(Node node) noexcept:
    """Return how many patterns a bucket may have."""
    return BUCKET if node.kind == LEFT else BEHIND


cdef str name_of(list words, str pattern):
    """Return the text of a pattern in normal form: the pattern itself if it has that form."""
    cdef str name = ".".join(words)
    # The binding has the pattern as well, so that no second text is kept.
    return pattern if name == pattern else name


cdef class TopicIndex:
    """Patterns and their numbers; finds the numbers for a routing key. See topic_matching.py."""

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
        free(self._key_ids)
        free(self._places)

    def __len__(self):
        return len(self._entries)

    # --- patterns -------------------------------------------------------------------------------

    cpdef add(self, str pattern, Py_ssize_t slot):
        """Add a pattern for a number >= 0; the same pattern added twice has to be removed twice."""
        cdef list words = canonical(pattern)
        cdef str name = name_of(words, pattern)
        cdef Entry entry = self._entries.get(name)
        cdef Py_ssize_t room
        cdef int before
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
            self._number(words)
            entry = self._entries[name] = Entry(name, <int>slot)
            self._insert(entry)
            return
        before = entry.slot
        entry.add(<int>slot)
        if entry.slot != before:
            # The packed pattern has the slot of its only binding: now there are several.
            self._mark(entry)

    cpdef remove(self, str pattern, Py_ssize_t slot):
        """Remove a pattern that `add` added."""
        cdef list words = canonical(pattern)
        cdef str name = name_of(words, pattern)
        cdef Entry entry = self._entries[name]
        cdef int before = entry.slot
        if entry.drop(<int>slot):
            if entry.slot != before:
                self._mark(entry)
            return
        self._take_out(entry)
        del self._entries[name]
        self._release(words)

    cdef int _number(self, list words) except -1:
        """Give each new word a number, and count the uses of all."""
        cdef Py_ssize_t room
        for word in words:
            if word == "#" or word == "*":
                continue
            number = self._ids.get(word)
            if number is None:
                if self._free:
                    number = self._free.pop()
                else:
                    number = len(self._uses)
                    self._uses.append(0)
                self._ids[word] = number
            self._uses[number] += 1
        if len(self._uses) > self._local_room:
            room = 2 * len(self._uses) + FIRST_ROOM
            self._local = <int*>grown(self._local, room * sizeof(int))
            memset(self._local, 0, room * sizeof(int))
            self._local_room = room
        return 0

    cdef tuple _parts(self, Entry entry):
        """Return the numbers of the words between the `#` of a pattern.

        They are made for each change of the tree: kept, they would be half of its memory.
        """
        cdef list parts = [], part = []
        for word in entry.name.split(".") if entry.name else ():
            if word == "#":
                parts.append(tuple(part))
                part = []
            elif word == "*":
                part.append(ANY)
            else:
                part.append(self._ids[word])
        parts.append(tuple(part))
        return tuple(parts)

    cdef _release(self, list words):
        for word in words:
            number = self._ids.get(word) if word != "*" and word != "#" else None
            if number is not None:
                self._uses[number] -= 1
                if self._uses[number] == 0:
                    del self._ids[word]
                    self._free.append(number)

    cdef int _insert(self, Entry entry) except -1:
        cdef Node node = self._root
        cdef tuple parts = self._parts(entry), step
        self._segmented += len(parts) > 2
        while node is not None:
            node.held += 1
            step = node.step(parts) if node.divided else None
            if step is None:
                node.put(entry, parts)
                break
            node = self._branch(node, step, entry, parts)
        while node is not None and not node.divided and len(node.bucket) > bucket_limit(node):
            node = self._divide(node)
        return 0

    cdef Node _branch(self, Node node, tuple step, Entry entry, tuple parts):
        """Return the child of a branch for a pattern; None if the pattern itself is the child.

        The only pattern behind a word has no node, which would be larger than the pattern.
        """
        cdef object child = node.child(step)
        cdef Entry other
        cdef Node shared
        if child is None:
            if node.kind == FREE or len(step) == 0 or step[0] == ANY:
                return node.grow(step)
            entry.packed = <int*>grown(NULL, packed_size(parts) * sizeof(int))
            pack_one(entry.packed, entry, parts, node.kind, node.depth + 1)
            if node.children is None:
                node.children = {}
            node.children[step[0]] = entry
            return None
        if isinstance(child, Node):
            return <Node>child
        other = <Entry>child
        free(other.packed)
        other.packed = NULL
        shared = node.grow(step)
        shared.held = 1
        shared.put(other, self._parts(other))
        return shared

    cdef Node _divide(self, Node node):
        """Distribute a bucket's patterns to children; return the fullest child, or None."""
        cdef list bucket = node.bucket
        cdef Node fullest = None, child
        cdef Entry entry
        cdef tuple parts, step
        node.divided = True
        node.empty()
        for entry in bucket:
            parts = self._parts(entry)
            step = node.step(parts)
            if step is None:
                node.put(entry, parts)
                continue
            child = self._branch(node, step, entry, parts)
            if child is None:
                continue
            child.held += 1
            child.put(entry, parts)
            if fullest is None or child.held > fullest.held:
                fullest = child
        return fullest

    cdef int _mark(self, Entry entry) except -1:
        """Store in the packed pattern whether the pattern has one slot or several."""
        cdef Node node = self._root
        cdef tuple parts, step
        if entry.packed != NULL:
            entry.packed[SLOT] = entry.slot
            return 0
        parts = self._parts(entry)
        while node.divided:
            step = node.step(parts)
            if step is None:
                break
            node = <Node>node.child(step)
        node.mark(entry)
        return 0

    cdef int _take_out(self, Entry entry) except -1:
        cdef Node node = self._root
        cdef tuple parts = self._parts(entry), step
        cdef object child
        self._segmented -= len(parts) > 2
        node.held -= 1
        while True:
            step = node.step(parts) if node.divided else None
            if step is None:
                node.take(entry)
                break
            child = node.child(step)
            if child is entry:
                node.cut(step)
                break
            if (<Node>child).held == 1:
                node.cut(step)
                break
            node = <Node>child
            node.held -= 1
        if (<Node>self._root).held == 0:
            self._root = Node(LEFT, 0)
        return 0

    # --- matching -------------------------------------------------------------------------------

    cpdef list match(self, str key):
        """Return the numbers of all patterns that match a key, each once."""
        cdef list matched = []
        cdef list words = key.split(".") if key else []
        cdef Py_ssize_t count = len(words)
        self.cost = 0
        self._stamp += 1
        # The number of matches has wrapped around: old stamps would look like those of this match.
        if self._stamp == 0:
            memset(self._stamps, 0, self._stamps_room * sizeof(unsigned int))
            self._stamp = 1
        self._read_key(words, count)
        if not self._segmented:
            self._visit(self._root, 0, count, matched)
            return matched
        self._read_places(count)
        try:
            self._visit(self._root, 0, count, matched)
        finally:
            # Only what this key has set: clearing everything would take time for every bound word.
            for number in self._distinct:
                self._local[<Py_ssize_t>number] = 0
        return matched

    cdef int _read_key(self, list words, Py_ssize_t count) except -1:
        """Number the words of the key."""
        cdef Py_ssize_t place
        cdef PyObject* bound
        if count > self._key_room:
            self._key = <int*>grown(self._key, count * sizeof(int))
            self._key_ids = <PyObject**>grown(self._key_ids, count * sizeof(PyObject*))
            self._key_room = count
        for place in range(count):
            bound = PyDict_GetItem(self._ids, words[place])
            # Without a number no pattern has this word: only `*` and `#` match it. The numbers
            # are those of the dictionary, which does not change during a match.
            self._key_ids[place] = bound
            self._key[place] = UNKNOWN if bound == NULL else <int><object>bound
        return 0

    cdef int _read_places(self, Py_ssize_t count) except -1:
        """Store the places of each word of the key, in which segments are searched."""
        cdef Py_ssize_t place, room
        cdef int number
        cdef list distinct = []
        self._distinct = distinct
        for place in range(count):
            number = self._key[place]
            if number != UNKNOWN and self._local[number] == 0:
                distinct.append(<object>self._key_ids[place])
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
        for place in range(count):
            number = self._key[place]
            if number != UNKNOWN:
                self._places[self._local[number] * self._stride + (place >> 6)] |= (
                    1ULL << (place & 63))
        return 0

    cdef int _visit(self, Node node, Py_ssize_t first, Py_ssize_t end, list matched) except -1:
        cdef Py_ssize_t after, before, place
        cdef PyObject* branch
        cdef PyObject* number
        cdef Node child
        cdef bint left
        self.cost += 1
        if node.packed_size:
            self._look(node, first, end, matched)
        if not node.divided:
            return 0
        if node.kind == FREE:
            if node.segments is not None:
                self._visit_segments(node, first, end, matched)
        elif first < end:
            left = node.kind == LEFT
            after = first + 1 if left else first
            before = end if left else end - 1
            number = self._key_ids[first if left else end - 1]
            if number != NULL and node.children is not None:
                branch = PyDict_GetItem(node.children, <object>number)
                if branch != NULL:
                    if isinstance(<object>branch, Entry):
                        # As much as a node with one pattern.
                        self.cost += 2
                        take(self, (<Entry>branch).packed, <Entry>branch, after, before, matched)
                    else:
                        self._visit(<Node>branch, after, before, matched)
            if node.one is not None:
                self._visit(node.one, after, before, matched)
        if node.many is not None:
            self._visit(node.many, first, end, matched)
        return 0

    cdef int _visit_segments(
        self, Node node, Py_ssize_t first, Py_ssize_t end, list matched
    ) except -1:
        cdef PyObject* branch
        cdef Py_ssize_t place
        cdef Node child
        for number in self._distinct:
            branch = PyDict_GetItem(node.segments, number)
            if branch != NULL and self._stands_behind(number, first):
                for child in (<dict>branch).values():
                    self.cost += 1
                    place = self._place(child.segment, first, end)
                    if place >= 0:
                        self._visit(child, place + child.segment[0], end, matched)
        return 0

    cdef bint _stands_behind(self, int number, Py_ssize_t first):
        """True if a word is at a place of the key or behind it."""
        cdef unsigned long long* row = self._places + self._local[number] * self._stride
        cdef Py_ssize_t index = first >> 6
        # A number has 64 places: shift out those before `first`, then search whole numbers.
        if row[index] >> (first & 63):
            return True
        for index in range(index + 1, self._stride):
            if row[index]:
                return True
        return False

    cdef int _look(self, Node node, Py_ssize_t first, Py_ssize_t end, list matched) except -1:
        """Test every pattern of a bucket."""
        cdef int* pattern = node.packed
        cdef int* stop = pattern + node.packed_size
        cdef Py_ssize_t index = 0
        while pattern < stop:
            self.cost += 1
            take(
                self, pattern, <Entry>PyList_GET_ITEM(node.bucket, index), first, end, matched)
            pattern += pattern[SIZE]
            index += 1
        return 0

    cdef bint _fits(self, int* pattern, Py_ssize_t first, Py_ssize_t end) noexcept:
        cdef int* word = pattern + WORDS
        cdef Py_ssize_t segment
        if not equal(word, self._key + first, pattern[PREFIX]):
            return False
        word += pattern[PREFIX]
        first += pattern[PREFIX]
        end -= pattern[SUFFIX]
        if not equal(word, self._key + end, pattern[SUFFIX]):
            return False
        word += pattern[SUFFIX]
        for segment in range(pattern[SEGMENTS]):
            # The first match leaves the most words for the next segments: nothing is tried again.
            first = self._place(word, first, end)
            if first < 0:
                return False
            first += word[0]
            word += 2 + 2 * word[1]
        return True

    cdef Py_ssize_t _place(self, int* segment, Py_ssize_t first, Py_ssize_t end) noexcept:
        """Return the first place where a segment matches between two places of the key, or -1."""
        cdef Py_ssize_t starts = end - segment[0] - first + 1
        cdef Py_ssize_t index, place
        cdef unsigned long long matches
        cdef unsigned long long* row
        cdef int shift
        while starts > 0:
            matches = ~0ULL if starts >= 64 else (1ULL << starts) - 1
            for index in range(segment[1]):
                place = first + segment[2 + 2 * index]
                row = (self._places + self._local[segment[3 + 2 * index]] * self._stride
                       + (place >> 6))
                shift = <int>(place & 63)
                # 64 places from any bit on lie in two numbers. A shift by 64 is undefined in C.
                if shift:
                    matches &= row[0] >> shift | row[1] << (64 - shift)
                else:
                    matches &= row[0]
                if matches == 0:
                    break
            if matches:
                return first + harebell_lowest(matches)
            first += 64
            starts -= 64
        return -1
