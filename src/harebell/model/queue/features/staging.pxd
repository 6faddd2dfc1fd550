cimport cython
from harebell.base.message cimport Message
from harebell.kernels.rows cimport Rows
from harebell.model.queue.features.expiry cimport Expiry
from harebell.model.queue.features.limit_enforcement cimport (
    begin_count, check_limits, refuse_if_full
)
from harebell.model.queue.features.limits cimport Limits
from harebell.model.queue.features.queue_internals cimport QueueInternals
from harebell.model.queue.order.contract cimport MessageOrder

cdef int _FILE
cdef int _FULL

cdef class OpenBatch:
    cdef readonly long long count
    cdef readonly long long byte_count
    cdef QueueInternals _queue
    cdef MessageOrder _order
    cdef bint _expires

    @cython.locals(queue=QueueInternals, byte_count="long long")
    cdef int publish(self, Message message) except -1
    @cython.locals(queue=QueueInternals)
    cdef int stage(self, Message message) except -1
    @cython.locals(queue=QueueInternals, expiry=Expiry, dated=bint)
    cdef bint rows_differ(self, Message like) except -1
    @cython.locals(queue=QueueInternals)
    cdef int stage_rows(
        self, Rows rows, Py_ssize_t first, Py_ssize_t end, Message like
    ) except -1
    @cython.locals(queue=QueueInternals, expiry=Expiry)
    cdef Message _hide(self, Message message)
    @cython.locals(queue=QueueInternals, limits=Limits)
    cdef int end(self, bint roll_back) except -1
