cimport cython
from harebell.base.message cimport Message, Properties
from harebell.front.amqp_0_9_1.confirm cimport Confirms
from harebell.front.amqp_0_9_1.connection cimport Connection
from harebell.front.operations.publishing_channel cimport PublishingChannel
from harebell.front.operations.returns cimport unroutable
from harebell.front.common.unacked cimport Unacked, UnackedDeliveries
from harebell.model.consumer cimport Consumer
from harebell.model.queue.contract cimport Queue

cdef int _IMMEDIATE
cdef int _AT_ONCE
cdef Py_ssize_t _OUTPUT_HIGH

cdef class Channel(PublishingChannel):
    cdef public Connection connection
    cdef readonly UnackedDeliveries unacked
    cdef public unsigned long long next_tag
    cdef public dict consumers
    cdef public bint cancelled
    cdef public int prefetch
    cdef public int prefetch_global
    cdef public int outstanding
    cdef public int allowed
    cdef public object waiting
    cdef public Confirms confirms
    cdef public object association
    cdef public str last_queue
    cdef public object reply_queue
    cdef public object classes
    cdef public object publisher

    @cython.locals(connection=Connection)
    cpdef int publish(self, int flags, str exchange_name, str routing_key, Properties properties,
                      bytes body) except -1
    @cython.locals(result=int, queue=Queue)
    cpdef int accept(self, Message message, tuple queues, int flags) except -1
    @cython.locals(member=Unacked, queue=Queue, last="unsigned long long")
    cpdef int ack(self, unsigned long long tag, bint multiple) except -1
    @cython.locals(unacked=UnackedDeliveries, member=Unacked, queue=Queue, consumer=Consumer,
                   number="unsigned long long", count="long long")
    cdef int _settle_up_to(self, unsigned long long last) except -1
    @cython.locals(entry=Unacked, number="unsigned long long", last="unsigned long long",
                   entries=list)
    cpdef list take(self, unsigned long long tag, bint multiple, int method_id)
    @cython.locals(entry=Unacked, number="unsigned long long", entries=list)
    cpdef list take_some(self, unsigned long long last, int limit)
    cpdef int await_prefetch(self, Consumer consumer) except -1
    @cython.locals(limit=int, turns="Py_ssize_t", before=int, consumer=Consumer)
    cpdef int share_prefetch(self) except -1
    cpdef int serve(self) except -1
