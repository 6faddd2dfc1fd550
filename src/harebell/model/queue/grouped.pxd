cimport cython
from harebell.base.message cimport Message
from harebell.model.consumer cimport Consumer
from harebell.model.queue.classic cimport ClassicQueue
from harebell.model.queue.ready cimport ReadyOrder

cdef int _SCAN_MOST

cdef class GroupedQueue(ClassicQueue):
    cdef object _groups
    cdef str _key_name
    cdef object _editor
    cdef object _key
    cdef bint _passed_over
    cdef public long long waiting_most

    cdef object _key_of(self, Message message)
    cdef Consumer _pick(self)
    cdef int _taken(self, Message message) except -1
    cpdef int drain(self) except -1
    @cython.locals(consumer=Consumer, position="long long", message=Message, passed=int,
                   goes_on=bint)
    cdef int _deal(self, object groups) except -1
    @cython.locals(message=Message)
    cdef Message _take_one(self, object groups, long long position)
    cdef Message _take_at(self, object groups, long long position)
    @cython.locals(order=ReadyOrder, message=Message)
    cdef Message _take_new(self, object groups, object holder)
    @cython.locals(position="long long", taker=Consumer)
    cdef int _hand(self, Message message, Consumer consumer, bint goes_on) except -1
    cdef int _put_aside(self, long long position) except -1
    @cython.locals(consumer=Consumer)
    cdef Consumer _who_goes_on(self, object groups)
    cpdef int settle(self, long long position) except -1
    cpdef int reject(self, long long position) except -1
    cpdef int pause(self, long long position) except -1
    @cython.locals(message=Message)
    cpdef bint hold(self, long long position) except -1
    @cython.locals(message=Message)
    cdef int _put_back(self, long long position) except -1
    @cython.locals(found="long long", waiting="long long")
    cdef long long _look(self, list cursors) except -2
    cdef bint _was_out(self, long long position) except -1
    @cython.locals(message=Message)
    cdef bint _acquire(self, long long position, Consumer consumer) except -1
    @cython.locals(order=ReadyOrder, message=Message, position="long long")
    cdef Message _take(self)
    @cython.locals(message=Message, position="long long")
    cdef Message _peek(self)
    cdef int _drop_ready(self) except -1
    cdef int _drop_all(self) except -1
