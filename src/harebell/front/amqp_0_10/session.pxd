cimport cython
from harebell.base.message cimport Message, Properties
from harebell.base.sequence cimport Sequence
from harebell.front.amqp_0_10.session_layer cimport SessionLayer
from harebell.model.queue.contract cimport Queue

cdef int _EXPLICIT
cdef int _DISCARD
cdef int _IMMEDIATE
cdef int _PENDING
cdef int _REJECTED
cdef tuple _NOWHERE

cdef class Session(SessionLayer):
    cdef public dict consumers
    cdef public Sequence unacked
    cdef public Sequence shown
    cdef public Sequence windowed
    cdef public object association
    cdef public str selected
    cdef public set ending
    cdef public str last_queue
    cdef public object extras
    cdef list _accepting

    cpdef int publish(self, int flags, str destination, str routing_key, Properties properties,
                      bytes body) except -1
    @cython.locals(queue=Queue, result=int, answer=int)
    cpdef int accept(self, Message message, tuple queues, int flags) except -1
    cpdef int send_completed(self) except -1
    cpdef int serve(self) except -1
