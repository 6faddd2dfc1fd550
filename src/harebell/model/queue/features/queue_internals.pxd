from harebell.base.clock cimport Clock
from harebell.base.message cimport Message
from harebell.model.queue.contract cimport Queue
from harebell.model.queue.features.expiry cimport Expiry
from harebell.model.queue.features.failure_counts cimport FailureCounts
from harebell.model.queue.features.limits cimport Limits
from harebell.model.queue.order.contract cimport MessageOrder
from harebell.model.queue.order.keyed cimport KeyedOrder

cdef class QueueInternals(Queue):
    cdef public MessageOrder order
    cdef public KeyedOrder keyed
    cdef public bint single
    cdef public Clock clock
    cdef public object context
    cdef public object dead_letters
    cdef public Limits limits
    cdef public Expiry expiry
    cdef public object quorum
    cdef public object no_local
    cdef public object retry
    cdef public object deduplication
    cdef public FailureCounts failures
    cdef public bint spares

    cdef int note_kept(self, Message message) except -1
    cdef int outcome(self, Message message) except -1
    cdef Expiry with_expiry(self)
    cpdef int prepare_take(self) except -1
    cpdef Message with_count(self, Message message)
    cpdef int restore(self, long long position, bint redelivered) except -1
    cpdef int pause(self, long long position) except -1
    cpdef bint expired(self, Message message) except -1
    cpdef int dead_letter(self, long long position, str reason) except -1
