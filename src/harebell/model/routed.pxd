cimport cython
from harebell.base.message cimport Message
from harebell.kernels.rows cimport Rows
from harebell.model.exchange.kind cimport Exchange
from harebell.model.queue.kind cimport Queue
from harebell.model.router cimport Router

cdef class Routed:
    cdef readonly dict plain
    cdef readonly dict counts
    cdef public list lost
    cdef list _messages
    cdef list _queues

    @cython.locals(row="Py_ssize_t", end="Py_ssize_t", count="Py_ssize_t", exchange=Exchange,
                   name=str, message=Message)
    cpdef Py_ssize_t take(self, Rows rows, Py_ssize_t first, Router router) except -1
    cdef int _count(self, str name, Py_ssize_t count) except -1
    cpdef int keep(self, Message message, tuple queues) except -1
    @cython.locals(messages=list, every=list, at="Py_ssize_t", message=Message, queue=Queue)
    cpdef int publish(self) except -1
