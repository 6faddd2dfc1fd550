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

    @cython.locals(queue=Queue, queues=tuple)
    cpdef tuple route(self, Exchange exchange, Message message)
    @cython.locals(queue=Queue, queues=dict, route=tuple, known=tuple)
    cdef tuple _match_key(self, Exchange exchange, Message message)
    cdef tuple _walk(self, Exchange start, tuple messages)
    cdef _remember(self, Exchange exchange, str key, tuple route)
    cpdef bint same_for(self, Exchange exchange, str routing_key) except -1
