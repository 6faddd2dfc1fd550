cimport cython
from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.model.consumer cimport Consumer
from harebell.model.queue.kind cimport Queue

cdef int _ACCEPTED
cdef int _PENDING
cdef int _PERSISTENT

cdef class ClassicQueue(Queue):
    cdef Log _log
    cdef long long _cursor
    cdef list _returned
    cdef long long _ready
    cdef Py_ssize_t _turn
    cdef bint _ranked

    @cython.locals(consumer=Consumer, position="long long")
    cpdef int publish(self, Message message) except -1
    cdef int _taken(self, Message message) except -1
    cpdef long long ready_count(self) except -1
    cpdef int settle(self, long long position) except -1
    cpdef int requeue(self, long long position) except -1
    cpdef int sync_soon(self) except -1
    @cython.locals(consumer=Consumer)
    cpdef int drain(self) except -1
    @cython.locals(position="long long", redelivered=bint, message=Message)
    cdef int _serve(self, Consumer consumer) except -1
    @cython.locals(position="long long")
    cpdef tuple _next(self)
    @cython.locals(count=Py_ssize_t, turn=Py_ssize_t, consumer=Consumer)
    cdef Consumer _pick(self)
    @cython.locals(at=Py_ssize_t, last=Py_ssize_t, consumer=Consumer)
    cdef Consumer _pick_ranked(self)
