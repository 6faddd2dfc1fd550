cimport cython
from harebell.base.message cimport Message
from harebell.base.work cimport Work
from harebell.model.exchange.kind cimport Exchange
from harebell.model.queue.contract cimport Queue

cdef tuple NOWHERE
cdef Py_ssize_t _CACHE_ENTRIES

cdef class Router:
    cdef readonly dict exchanges
    cdef readonly dict queues
    cdef readonly dict replies
    cdef Queue _no_reply
    cdef readonly long long epoch
    cdef object _headers_of
    cdef public object tracer
    cdef public bint origins
    cdef public Work work

    @cython.locals(queue=Queue, found=tuple)
    cpdef tuple route(self, Exchange exchange, Message message)
    cpdef bint same_for(self, Exchange exchange, str routing_key) except -1
