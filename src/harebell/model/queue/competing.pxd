cimport cython
from harebell.base.clock cimport Clock
from harebell.base.message cimport Message, copy_message
from harebell.model.consumer cimport Consumer
from harebell.model.queue.kind cimport Queue

cdef long long _NO_POSITION
cdef int _ACCEPTED
cdef int _PENDING
cdef int _PERSISTENT
cdef int _EXPIRED_PER_TURN
cdef int _FOR_EVER

cdef class CompetingQueue(Queue):
    cdef public object dead_letters
    cdef object _surroundings
    cdef long long _ready
    cdef Py_ssize_t _turn
    cdef long long _position
    cdef bint _ranked
    cdef bint _lasting
    cdef bint _again
    cdef bint _single
    cdef bint _preempts
    cdef Consumer _active
    cdef Clock _clock
    cdef long long _ttl
    cdef bint _expiring
    cdef bint _mixed
    cdef object _timer
    cdef object _unused
    cdef object _retry
    cdef bint _restored

    cdef int _keep(self, Message message) except -1
    cdef long long _hand_over(self, Message message) except -1
    cdef Message _take(self)
    cdef Message _peek(self)
    cdef Message _read(self, long long position)
    cdef int _drop(self, long long position) except -1
    cdef int _put_back(self, long long position) except -1
    cpdef int failures(self, long long position) except -1
    cpdef int set_failures(self, long long position, int count) except -1
    cpdef bint hold(self, long long position) except -1
    cpdef int come_back(self, long long position) except -1
    cdef int _drop_ready(self) except -1
    cdef int _drop_all(self) except -1

    @cython.locals(consumer=Consumer, position="long long")
    cpdef int publish(self, Message message) except -1
    cdef int _taken(self, Message message) except -1
    cpdef long long ready_count(self) except -1
    @cython.locals(consumer=Consumer)
    cpdef int drain(self) except -1
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
    @cython.locals(count=Py_ssize_t, turn=Py_ssize_t, consumer=Consumer)
    cdef Consumer _pick(self)
    @cython.locals(active=Consumer, first=Consumer)
    cdef Consumer _pick_active(self)
    @cython.locals(at=Py_ssize_t, last=Py_ssize_t, consumer=Consumer)
    cdef Consumer _pick_ranked(self)
