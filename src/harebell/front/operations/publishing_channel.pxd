cimport cython
from harebell.base.counters cimport Counters
from harebell.base.message cimport Message, Properties, new_message
from harebell.front.common.base_connection cimport BaseConnection
from harebell.model.exchange.kind cimport Exchange
from harebell.model.router cimport Router

cdef class PublishingChannel:
    cdef public int number
    cdef public object content
    cdef public object vhost
    cdef public Router router
    cdef public Counters counters
    cdef public object details
    cdef public Counters at_exchange
    cdef public object topic
    cdef public object transaction
    cdef Exchange _exchange
    cdef long long _exchange_epoch

    cpdef int publish(self, int flags, str exchange_name, str routing_key, Properties properties,
                      bytes body) except -1
    cpdef int ack(self, unsigned long long tag, bint multiple) except -1
    cpdef int transfer(self, int flags, str destination, str routing_key, Properties properties,
                       bytes body) except -1
    cpdef int routed(self, Message message, tuple queues, int flags,
                     Properties properties) except -1
    cpdef int accept(self, Message message, tuple queues, int flags) except -1
    @cython.locals(exchange=Exchange, message=Message, queues=tuple)
    cpdef int route(self, BaseConnection connection, int flags, str exchange_name, str routing_key,
                    Properties properties, bytes body, bint answered) except -1
    cpdef int count_publish(self, BaseConnection connection, Exchange exchange,
                            Counters at_exchange, Py_ssize_t size, Py_ssize_t queue_count,
                            bint answered) except -1
    cpdef int forward(self, Message message, tuple queues, int flags) except -1
