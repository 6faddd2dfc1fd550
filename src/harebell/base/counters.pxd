cimport cython

cdef class Counters:
    cdef public long long publish
    cdef public long long confirm
    cdef public long long return_unroutable
    cdef public long long drop_unroutable
    cdef public long long deliver
    cdef public long long deliver_no_ack
    cdef public long long get
    cdef public long long get_no_ack
    cdef public long long get_empty
    cdef public long long redeliver
    cdef public long long ack
    cdef public long long seen
    cdef public long long moved_at

    @cython.locals(total="long long")
    cpdef bint moved(self, long long now) except -1
    cpdef int add(self, Counters other) except -1

cdef class Traffic:
    cdef public long long recv_oct
    cdef public long long recv_cnt
    cdef public long long send_oct
    cdef public long long send_cnt
    cdef public long long seen

    @cython.locals(total="long long")
    cpdef bint moved(self) except -1
    cpdef int add(self, Traffic other) except -1
