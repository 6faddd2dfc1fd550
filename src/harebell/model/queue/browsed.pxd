cimport cython
from harebell.base.message cimport Message
from harebell.model.consumer cimport Consumer
from harebell.model.queue.competing cimport CompetingQueue

cdef int _MOST
cdef int _NOTHING
cdef int _ACCEPTED
cdef int _FULL
cdef str _EXPIRED

cdef class Browser:
    cdef readonly Consumer consumer
    cdef readonly list cursors

cdef class BrowsedQueue(CompetingQueue):
    cdef list _places
    cdef str _alternate
    cdef object _repeats

    cpdef int publish(self, Message message) except -1
    cpdef bint holds(self, long long position) except -1
    @cython.locals(position="long long")
    cpdef list _waiting(self)
    cdef long long _look(self, list cursors) except -2
    cdef int _pass(self, list cursors, long long position) except -1
    cdef bint _was_out(self, long long position) except -1
    cdef bint _take_out(self, long long position) except -1
    cdef int _untouched(self, long long position) except -1
    cdef bint _acquire(self, long long position, Consumer consumer) except -1
    cdef int _show_all(self) except -1
    @cython.locals(consumer=Consumer, message=Message, position="long long", shown=int)
    cdef int _show(self, Browser place) except -1
    cdef int _taken(self, Message message) except -1
    cpdef int drain(self) except -1
    @cython.locals(message=Message)
    cpdef int reject(self, long long position) except -1
    cdef int _send_on(self, Message message) except -1
    cdef int _send_on_all(self) except -1
