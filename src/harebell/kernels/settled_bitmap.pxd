cdef class SettledBitmap:
    cdef readonly long long first
    cdef readonly long long count
    cdef readonly long long live
    cdef unsigned int* _offsets
    cdef long long _capacity
    cdef unsigned char* _bits
    cdef long long _mapped
    cdef long long _front

    cdef bint _bit(self, long long index) noexcept
    cpdef bint is_loaded(self) noexcept
    cdef int _check_loaded(self) except -1
    cpdef long long end(self) except -1
    cpdef long long add(self, unsigned int offset) except -1
    cpdef int miss(self, long long position) except -1
    cpdef long long offset(self, long long position) except -2
    cpdef bint settled(self, long long position) except -1
    cpdef bint settle(self, long long position) except -1
    cpdef long long settle_range(self, long long first, long long end) except -1
    cpdef long long next(self, long long position) except -1
    cpdef tuple reach(
        self,
        long long position,
        long long end,
        long long stop,
        long long messages,
        long long byte_count,
    )
    cpdef long long live_in(self, long long first, long long end) except -1
    cpdef bytes ranges(self)
    cpdef bytes offsets(self)
    cpdef long long offset_bytes(self) except -1
    cpdef bint load(self, bytes offsets) except -1
    cpdef int drop(self) except -1
    cpdef int restore(self, long long count) except -1
    cpdef long long front(self) except -1
    cpdef bytes bits(self)
    cpdef int settle_state(self, long long front, bytes bits) except -1
