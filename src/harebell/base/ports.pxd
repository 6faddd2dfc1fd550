from harebell.base.message cimport Message

cdef class Log:
    cdef public bint has_large

    cpdef bint is_spilled(self, long long position) except -1
    cpdef long long append(self, Message message) except -1
    cpdef long long append_rows(
        self, object rows, Py_ssize_t first, Py_ssize_t end, Message like
    ) except -1
    cpdef Message read(self, long long position)
    cpdef int settle(self, long long position) except -1
    cpdef int settle_range(self, long long first, long long end) except -1
    cpdef long long next(self, long long position) except -1
    cpdef long long first(self) except -1
    cpdef long long end(self) except -1
    cpdef long long live(self) except -1
    cpdef tuple reach(
        self, long long position, long long end, long long messages, long long byte_count
    )
    cpdef long long live_in(self, long long first, long long end) except -1
    cpdef long long byte_count(self) except -1
    cpdef int see(self, long long position) except -1
    cpdef long long seen(self) except -1
    cpdef int count(self, long long position) except -1
    cpdef list counted(self)
    cpdef int set_count(self, long long position, int count) except -1
    cpdef long long time_of(self, long long position) except -1
    cpdef long long at_time(self, long long moment) except -1
    cpdef long long append_to(self, long long position, long long end, object into) except -1
    cpdef long long retain(
        self, long long byte_count, long long moment, long long below=*
    ) except -1
    cpdef int cut_at(self, long long byte_count) except -1
    cpdef int sync_soon(self) except -1
    cpdef int delete(self) except -1

cdef class Commit:
    cdef public long long ticket
    cdef public long long done
    cdef public long long records
    cdef public bint urgent
    cdef public bint joint
    cdef public bint unsynced
    cdef public bint pinned
    cdef long long _pinned_at
    cdef public long long staging
    cdef public list staged
    cdef public list closing
