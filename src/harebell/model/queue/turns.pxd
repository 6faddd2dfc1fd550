cimport cython
from harebell.model.consumer cimport Consumer
from harebell.model.queue.kind cimport Queue

cdef class TakingTurns(Queue):
    cdef Py_ssize_t _turn
    cdef bint _ranked
    cdef bint _single
    cdef bint _preempts
    cdef Consumer _active

    @cython.locals(count=Py_ssize_t, turn=Py_ssize_t, consumer=Consumer)
    cdef Consumer _pick(self)
    @cython.locals(active=Consumer, first=Consumer)
    cpdef Consumer pick_active(self)
    @cython.locals(at=Py_ssize_t, last=Py_ssize_t, consumer=Consumer)
    cdef Consumer _pick_ranked(self)
