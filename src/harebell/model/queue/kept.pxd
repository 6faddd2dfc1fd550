from harebell.base.message cimport Message
from harebell.model.queue.kind cimport Queue

cdef class Kept(Queue):
    cdef long long _ready
    cdef long long _position
    cdef bint _again

    cdef int _keep(self, Message message) except -1
    cdef long long _hand_over(self, Message message) except -1
    cdef Message _take(self)
    cdef bint _is_far(self) except -1
    cdef int _fetch(self, object done) except -1
    cdef int _skip(self) except -1
    cdef Message _peek(self)
    cdef Message _read(self, long long position)
    cdef int _drop(self, long long position) except -1
    cdef int _put_back(self, long long position) except -1
    cpdef long long next_position(self, Message message) except -1
    cpdef int failures(self, long long position) except -1
    cpdef int set_failures(self, long long position, int count) except -1
    cpdef bint hold(self, long long position) except -1
    cdef int _drop_ready(self) except -1
    cdef int _drop_all(self) except -1
    cpdef int begin_count(self) except -1
    cdef bint _counts_at(self, long long position) except -1
