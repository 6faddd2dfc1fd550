cimport cython
from harebell.base.counters cimport Counters
from harebell.base.message cimport Message, Properties, new_message
from harebell.base.sequence cimport Sequence
from harebell.front.amqp_0_10.session_layer cimport SessionLayer
from harebell.model.exchange.kind cimport Exchange
from harebell.model.queue.contract cimport Queue
from harebell.model.router cimport Router

cdef int _EXPLICIT
cdef int _DISCARD
cdef int _IMMEDIATE
cdef int _PENDING
cdef int _REJECTED
cdef tuple _NOWHERE

cdef class Session(SessionLayer):
    cdef public Router router
    cdef public dict consumers
    cdef public Counters counters
    cdef public object details
    cdef public Counters at_exchange
    cdef public Sequence unacked
    cdef public Sequence shown
    cdef public Sequence windowed
    cdef public object transaction
    cdef public object association
    cdef public str selected
    cdef public set ending
    cdef public str last_queue
    cdef public object extras
    cdef public object topic
    cdef Exchange _exchange
    cdef long long _exchange_epoch
    cdef list _accepting
    cdef bint _intercepts

    @cython.locals(exchange=Exchange, message=Message, queues=tuple)
    cpdef int publish(self, int flags, str destination, str routing_key, Properties properties,
                      bytes body) except -1
    @cython.locals(queue=Queue, result=int, answer=int)
    cpdef int accept(self, Message message, tuple queues, int flags) except -1
    cpdef int send_completed(self) except -1
    cpdef int serve(self) except -1
