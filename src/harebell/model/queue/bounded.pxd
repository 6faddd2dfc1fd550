cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.kept cimport Kept
from harebell.model.queue.overflow cimport Overflow

cdef str _MAXLEN
cdef int _TRIMMED

cdef class BoundedQueue(Kept):
    cdef public object dead_letters
    cdef Overflow _overflow

    cdef bint _refuses(self, Overflow overflow, Message message) except -1
    @cython.locals(overflow=Overflow)
    cdef bint _may_skip(self) except -1
    cdef int _grown(self) except -1
    @cython.locals(
        overflow=Overflow,
        message=Message,
        position="long long",
        gone=int,
        most=int,
        in_turns=bint,
        unread=bint,
    )
    cdef int _trim(self) except -1
    cdef bint _go_on_later(self) except -1
    cdef bint _goes_on_later(self) except -1
    cdef int _trimmed(self) except -1
    cdef Message _victim(self)
    cdef int _left(self, Overflow overflow, Message message) except -1
    @cython.locals(message=Message)
    cdef int _came_back(self, Overflow overflow, long long position) except -1
