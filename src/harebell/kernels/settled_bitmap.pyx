"""File offsets of the messages of a segment, and which of them are settled, in C.

settled_bitmap.py beside this file is the same in pure Python; both agree call for call.

    index      0 ............ _front ................ count
    settled    all of them    a bit each in _bits     do not exist

Bit `index & 7` of byte `index >> 3` belongs to an index. Bytes behind `_mapped` do not exist and
count as zero: a queue that is settled in order has no bitmap at all.
"""

from libc.stdlib cimport free, realloc
from libc.string cimport memset

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

    cpdef long long end(self) except -1:
        return self.first + self.count

    cpdef long long add(self, unsigned int offset) except -1:
        cdef long long wanted
        cdef unsigned int* grown
        if self.count == self._capacity:
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
        if index < 0 or index >= self.count or self._offsets[index] == LOST:
            return -1
        return self._offsets[index]

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
        while index < limit and count < messages:
            if not self._bit(index):
                # A record ends where the next one that exists begins.
                behind = index + 1
                while behind < self.count and self._offsets[behind] == LOST:
                    behind += 1
                size = (self._offsets[behind] if behind < self.count else stop)
                size -= self._offsets[index]
                if 0 <= byte_count and byte_count < total + size:
                    break
                total += size
                count += 1
                reached = self.first + index + 1
            index += 1
        return reached, count, total

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

    cdef bint _bit(self, long long index) noexcept:
        cdef long long octet = index >> 3
        return octet < self._mapped and (self._bits[octet] >> (index & 7)) & 1
