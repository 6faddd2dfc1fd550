cimport cython
from harebell.base.clock cimport Clock
from harebell.base.message cimport Message, copy_message
from harebell.base.work cimport Work
from harebell.model.consumer cimport Consumer
from harebell.model.queue.overflow cimport Overflow
from harebell.model.queue.promised cimport PromisedQueue

cdef long long _NO_POSITION
cdef int _ACCEPTED
cdef int _PENDING
cdef int _FULL
cdef int _PERSISTENT
cdef int _SPARED
cdef int _EXPIRED_PER_TURN
cdef int _FOR_EVER
cdef int _FAILURES
cdef int _REJECTIONS_SHIFT

cdef class CompetingQueue(PromisedQueue):
    cdef object _surroundings
    cdef bint _single
    cdef bint _lasting
    cdef Clock _clock
    cdef long long _ttl
    cdef bint _expiring
    cdef bint _mixed
    cdef object _timer
    cdef object _unused
    cdef object _retry
    cdef object _linger
    cdef object _local
    cdef bint _restored
    cdef Work _work
    cdef bint _put_off
    cdef bint _fetching
    cdef bint _spares

    cdef Consumer _pick(self)
    @cython.locals(count=int)
    cdef Message _counted(self, Message message)
    cpdef int come_back(self, long long position) except -1
    cpdef int pause(self, long long position) except -1

    @cython.locals(consumer=Consumer, position="long long", overflow=Overflow)
    cpdef int publish(self, Message message) except -1
    @cython.locals(overflow=Overflow)
    cdef int _publish_local(self, Message message) except -1
    cdef int _publish_hidden(self, Message message) except -1
    cdef int _taken_hidden(self, Message message) except -1
    cdef int _taken(self, Message message) except -1
    cpdef long long ready_count(self) except -1
    @cython.locals(consumer=Consumer)
    cpdef int drain(self) except -1
    cdef int _fetch_next(self) except -1
    @cython.locals(position="long long", message=Message)
    cdef int _serve(self, Consumer consumer) except -1
    @cython.locals(due="long long")
    cdef Message _dated(self, Message message)
    cdef int _expects(self, long long due) except -1
    @cython.locals(message=Message)
    cdef long long _expire_heads(self, long long now) except -1
    cdef int _wake_at(self, long long due) except -1
    cdef int _look_ahead(self) except -1
    cpdef int settle(self, long long position) except -1
    cpdef int time_out(self, long long position) except -1
    cpdef int requeue(self, long long position) except -1
    cpdef int reject(self, long long position) except -1
    @cython.locals(message=Message)
    cdef int _bury(self, long long position, str reason) except -1
    cdef int _trimmed(self) except -1
