cimport cython
from harebell.base.message cimport Message
from harebell.kernels.rows cimport Rows
from harebell.model.exchange.kind cimport Exchange
from harebell.model.queue.contract cimport Queue
from harebell.model.queue.features.limits cimport Incoming
from harebell.model.router cimport Router

cdef class Routed:
    cdef readonly dict plain
    cdef readonly dict counts
    cdef public long long single
    cdef public list lost
    cdef readonly list queues
    cdef dict _incoming
    cdef dict _staged

    @cython.locals(row="Py_ssize_t", count="Py_ssize_t", behind="Py_ssize_t", exchange=Exchange,
                   name=str, message=Message, found=tuple)
    cpdef Py_ssize_t take(self, Rows rows, Py_ssize_t first, Py_ssize_t end,
                          Router router) except -1
    cdef int _count(self, str name, Py_ssize_t count) except -1
    @cython.locals(queue=Queue, incoming=Incoming)
    cpdef tuple put(self, Message message, tuple queues)
    cdef tuple _stage_feedback(self, Message message, tuple queues)
    @cython.locals(queue=Queue, incoming=Incoming)
    cdef int _put_rows(
        self, Rows rows, Py_ssize_t first, Py_ssize_t end, Message like, tuple queues
    ) except -1
    cdef int _begin_batch(self, Queue queue) except -1
    @cython.locals(queue=Queue)
    cpdef int commit_batch(self) except -1
    @cython.locals(queue=Queue)
    cpdef int roll_back_batch(self) except -1
    cdef int _end_feedback(self, bint committed) except -1
