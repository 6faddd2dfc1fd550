cimport cython
from harebell.base.counters cimport Counters
from harebell.base.message cimport Message
from harebell.base.work cimport Work
from harebell.kernels.rows cimport Rows
from harebell.model.consumer cimport Consumer
from harebell.model.queue.features.consumers cimport Consumers

cdef class Queue:
    cdef public str name
    cdef public str vhost
    cdef public str identity
    cdef public bint durable
    cdef public bint auto_delete
    cdef public object owner
    cdef public object arguments
    cdef public object bound
    cdef public tuple itself
    cdef public Consumers consumers
    cdef public object browsers
    cdef public bint had_consumers
    cdef readonly long long step
    cdef public long long unacked
    cdef public long long leased
    cdef public object leases
    cdef public Counters counters
    cdef public str source
    cdef long long _since
    cdef dict _sources
    cdef public bint stays
    cdef public bint deleted
    cdef public bint staging
    cdef public str kind
    cdef public bint ticks
    cdef public Work work
    cdef bint _put_off

    cpdef int publish(self, Message message) except -1
    cdef int publish_once(self, Message message) except -1
    @cython.locals(mine=Counters, theirs=Counters, both=Counters)
    cpdef int count_delivery(self, Consumer consumer, bint redelivered) except -1
    cpdef int arrives_from(self, str exchange) except -1
    cpdef int begin_batch(self) except -1
    cpdef int stage(self, Message message) except -1
    cpdef int stage_rows(
        self, Rows rows, Py_ssize_t first, Py_ssize_t end, Message like
    ) except -1
    cdef int _stage_each(
        self, Rows rows, Py_ssize_t first, Py_ssize_t end, Message like
    ) except -1
    cpdef int commit_batch(self) except -1
    cpdef int roll_back_batch(self) except -1
    cpdef int admit(self, Message message) except -1
    cpdef bint withhold(self, long long position) except -1
    cpdef long long ready_count(self) except -1
    cpdef int settle(self, long long position) except -1
    @cython.locals(index="long long")
    cpdef int settle_some(self, long long position, long long count) except -1
    cpdef int requeue(self, long long position) except -1
    cpdef int requeue_returned(self, long long position) except -1
    cpdef int time_out(self, long long position) except -1
    cpdef int reject(self, long long position) except -1
    cpdef int drain(self) except -1
    cpdef int drain_later(self) except -1
    cpdef int serve(self, Consumer consumer) except -1
    cpdef int sync_soon(self) except -1
