"""File offsets of the messages of a segment, and which of them are settled, in C.

settled_bitmap.py beside this file is the same in pure Python; both agree call for call.

    index      0 ............ _front ................ count
    settled    all of them    a bit each in _bits     do not exist

While the offsets are not in memory, `_offsets` is NULL and `_capacity` is `count`, so that `add`
meets it only where it would grow the array.

Bit `index & 7` of byte `index >> 3` belongs to an index. Bytes behind `_mapped` do not exist and
count as zero: a queue that is settled in order has no bitmap at all.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy, memset

from struct import pack

MISSING = 0xFFFF_FFFF

cdef enum:
    FIRST_CAPACITY = 16

# Four bytes are enough for an offset: a segment is cut long before 4 GiB, except for one that has a
# single large message at its beginning.
cdef unsigned int LOST = 0xFFFFFFFFU


cdef class SettledBitmap:
    """The messages of one segment, by position; see settled_bitmap.py."""

    def __cinit__(self, long long first):
        self.first = first
        self.count = 0
        self.live = 0
        self._offsets = NULL
        self._capacity = 0
        self._bits = NULL
        self._mapped = 0
        self._front = 0

    def __dealloc__(self):
        free(self._offsets)
        free(self._bits)

    cpdef bint is_loaded(self) noexcept:
        return self._offsets != NULL or self.count == 0

    cpdef long long end(self) except -1:
        return self.first + self.count

    cpdef long long add(self, unsigned int offset) except -1:
        cdef long long wanted
        cdef unsigned int* grown
        if self.count == self._capacity:
            self._check_loaded()
            # Doubling: how many messages a segment gets is not known before it is full.
            wanted = self._capacity * 2 if self._capacity else FIRST_CAPACITY
            grown = <unsigned int*>realloc(self._offsets, <size_t>wanted * sizeof(unsigned int))
            if grown == NULL:
                raise MemoryError()
            self._offsets = grown
            self._capacity = wanted
        self._offsets[self.count] = offset
        self.count += 1
        self.live += 1
        return self.first + self.count - 1

    cpdef int miss(self, long long position) except -1:
        while self.first + self.count < position:
            self.settle(self.add(LOST))
        return 0

    cpdef long long offset(self, long long position) except -2:
        cdef long long index = position - self.first
        if index < 0 or index >= self.count:
            return -1
        if self._offsets == NULL:
            self._check_loaded()
        return -1 if self._offsets[index] == LOST else <long long>self._offsets[index]

    cpdef bint settled(self, long long position) except -1:
        cdef long long index = position - self.first
        return index < 0 or index >= self.count or index < self._front or self._bit(index)

    cpdef bint settle(self, long long position) except -1:
        cdef long long index = position - self.first
        cdef long long octet, wanted
        cdef unsigned char* grown
        if index < 0 or index >= self.count or index < self._front or self._bit(index):
            return False
        self.live -= 1
        # Settled in order: the front moves on, over positions that were settled before it.
        if index == self._front:
            index += 1
            while index < self.count and self._bit(index):
                index += 1
            self._front = index
            # No live position is left behind the front: without a bitmap the next one costs
            # nothing.
            if self._front == self.count:
                free(self._bits)
                self._bits = NULL
                self._mapped = 0
            return True
        octet = index >> 3
        if octet >= self._mapped:
            # Half as much again, so that settling backwards and forwards does not grow each time.
            wanted = octet + 1 + (octet >> 1)
            grown = <unsigned char*>realloc(self._bits, <size_t>wanted)
            if grown == NULL:
                # Undo the count above: the position is not settled.
                self.live += 1
                raise MemoryError()
            memset(grown + self._mapped, 0, <size_t>(wanted - self._mapped))
            self._bits = grown
            self._mapped = wanted
        self._bits[octet] |= 1 << (index & 7)
        return True

    cpdef long long settle_range(self, long long first, long long end) except -1:
        cdef long long position = max(first, self.first)
        cdef long long done = 0
        end = min(end, self.first + self.count)
        if position <= self.first + self._front and end == self.first + self.count:
            # Everything is settled now, whatever the bits say: no loop is needed.
            done = self.live
            self.live = 0
            self._front = self.count
            free(self._bits)
            self._bits = NULL
            self._mapped = 0
            return done
        if self._bits == NULL and position <= self.first + self._front < end:
            # In order, and nothing behind the front is settled.
            done = end - self.first - self._front
            self.live -= done
            self._front += done
            return done
        while position < end:
            done += self.settle(position)
            position += 1
        return done

    cpdef long long next(self, long long position) except -1:
        cdef long long index = max(position - self.first, self._front)
        while index < self.count and self._bit(index):
            index += 1
        return self.first + min(index, self.count)

    cpdef tuple reach(
        self,
        long long position,
        long long end,
        long long stop,
        long long messages,
        long long byte_count,
    ):
        cdef long long index = max(position - self.first, self._front)
        cdef long long limit = min(end - self.first, self.count)
        cdef long long reached = position
        cdef long long count = 0
        cdef long long total = 0
        cdef long long behind, size
        self._check_loaded()
        while index < limit and count < messages:
            if not self._bit(index):
                # A record ends where the next one that exists begins.
                behind = index + 1
                while behind < self.count and self._offsets[behind] == LOST:
                    behind += 1
                size = 0
                # The record of a live one may be lost since: it counts as empty.
                if self._offsets[index] != LOST:
                    size = self._offsets[behind] if behind < self.count else stop
                    size -= self._offsets[index]
                if 0 <= byte_count and byte_count < total + size:
                    break
                total += size
                count += 1
                reached = self.first + index + 1
            index += 1
        return reached, count, total

    cpdef long long live_in(self, long long first, long long end) except -1:
        cdef long long index = max(first - self.first, self._front)
        cdef long long limit = min(end - self.first, self.count)
        cdef long long live = 0
        if index == self._front and limit == self.count:
            return self.live
        if self._bits == NULL:
            return max(limit - index, 0)
        while index < limit:
            live += not self._bit(index)
            index += 1
        return live

    cpdef bytes ranges(self):
        cdef long long index = 0
        cdef long long begin
        found = []
        while index < self.count:
            if not (index < self._front or self._bit(index)):
                index += 1
                continue
            begin = index
            while index < self.count and (index < self._front or self._bit(index)):
                index += 1
            found.append(pack("<QI", self.first + begin, index - begin))
        return b"".join(found)

    cpdef bytes offsets(self):
        if self._offsets == NULL:
            return b""
        return PyBytes_FromStringAndSize(
            <char*>self._offsets, <Py_ssize_t>self.count * sizeof(unsigned int)
        )

    cpdef long long offset_bytes(self) except -1:
        return 0 if self._offsets == NULL else self._capacity * <long long>sizeof(unsigned int)

    cpdef bint load(self, bytes offsets) except -1:
        cdef Py_ssize_t size = PyBytes_GET_SIZE(offsets)
        if self.is_loaded() or size != <Py_ssize_t>self.count * <Py_ssize_t>sizeof(unsigned int):
            return False
        self._offsets = <unsigned int*>malloc(<size_t>size)
        if self._offsets == NULL:
            raise MemoryError()
        memcpy(self._offsets, PyBytes_AS_STRING(offsets), <size_t>size)
        self._capacity = self.count
        return True

    cpdef int drop(self) except -1:
        free(self._offsets)
        self._offsets = NULL
        self._capacity = self.count
        return 0

    cpdef int restore(self, long long count) except -1:
        self.count = count
        self.live = count
        self._capacity = count
        return 0

    cpdef long long front(self) except -1:
        return self._front

    cpdef bytes bits(self):
        # Not the zeros behind the last message: the array grows by half of itself.
        cdef long long size = min(self._mapped, (self.count + 7) >> 3)
        return PyBytes_FromStringAndSize(<char*>self._bits, <Py_ssize_t>size)

    cpdef int settle_state(self, long long front, bytes bits) except -1:
        cdef const unsigned char* octets = <const unsigned char*>PyBytes_AS_STRING(bits)
        cdef long long octet
        cdef int bit
        if self._front == 0 and self._bits == NULL and 0 <= front <= self.count:
            # Nothing is settled yet: no loop is needed.
            self._front = front
            self.live -= front
        else:
            self.settle_range(self.first, self.first + front)
        for octet in range(PyBytes_GET_SIZE(bits)):
            if octets[octet]:
                for bit in range(8):
                    if octets[octet] >> bit & 1:
                        self.settle(self.first + octet * 8 + bit)
        return 0

    cdef int _check_loaded(self) except -1:
        if not self.is_loaded():
            raise RuntimeError("the offsets of the segment are not loaded")
        return 0

    cdef bint _bit(self, long long index) noexcept:
        cdef long long octet = index >> 3
        return octet < self._mapped and (self._bits[octet] >> (index & 7)) & 1
