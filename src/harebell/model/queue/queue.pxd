cimport cython
from harebell.base.message cimport Message
from harebell.kernels.rows cimport Rows
from harebell.model.consumer cimport Consumer
from harebell.model.queue.features.browse cimport Browsing
from harebell.model.queue.features.expiry cimport Expiry
from harebell.model.queue.features.head_expiry cimport check_head, expire_heads, kept_until
from harebell.model.queue.features.limit_enforcement cimport check_limits, refuse_if_full
from harebell.model.queue.features.limits cimport Limits
from harebell.model.queue.features.key_dispatch cimport KeyDispatch
from harebell.model.queue.features.queue_internals cimport QueueInternals
from harebell.model.queue.features.quorum cimport Quorum
from harebell.model.queue.features.ready_bytes cimport add_ready_bytes_at, subtract_ready_bytes
from harebell.model.queue.features.staging cimport OpenBatch
from harebell.model.queue.order.contract cimport MessageOrder

cdef long long _NO_POSITION
cdef int _ACCEPTED
cdef int _PENDING
cdef int _FULL
cdef int _PERSISTENT
cdef int _FILE
cdef long long _AHEAD

cdef class MessageQueue(QueueInternals):
    cdef bint _keeps_all
    cdef KeyDispatch _dispatch
    cdef Browsing _browsing
    cdef OpenBatch _batch
    cdef object _claims
    cdef object _expires
    cdef object _linger
    cdef object _alternate
    cdef bint _fetching
    cdef Consumer _credited
    cdef bint _restored

    @cython.locals(
        consumer=Consumer,
        position="long long",
        limits=Limits,
        order=MessageOrder,
        expiry=Expiry,
        batch=OpenBatch,
    )
    cpdef int publish(self, Message message) except -1
    cdef int _publish_local(self, Message message) except -1
    cpdef int begin_batch(self) except -1
    @cython.locals(batch=OpenBatch)
    cpdef int stage(self, Message message) except -1
    @cython.locals(batch=OpenBatch)
    cpdef int stage_rows(
        self, Rows rows, Py_ssize_t first, Py_ssize_t end, Message like
    ) except -1
    cpdef int commit_batch(self) except -1
    cpdef int roll_back_batch(self) except -1
    @cython.locals(batch=OpenBatch)
    cdef int _end_batch(self, bint roll_back) except -1
    cpdef int drain(self) except -1
    cpdef int serve(self, Consumer consumer) except -1
    @cython.locals(consumer=Consumer, order=MessageOrder)
    cdef int _deliver_ready(self) except -1
    cdef int _fetch_next(self) except -1
    @cython.locals(
        order=MessageOrder, position="long long", message=Message, redelivered=bint
    )
    cdef int _deliver_next(self, Consumer consumer) except -1
    cpdef int prepare_take(self) except -1
    cpdef long long ready_count(self) except -1
    cpdef int settle(self, long long position) except -1
    cpdef int settle_some(self, long long position, long long count) except -1
    cpdef int requeue(self, long long position) except -1
    cpdef int requeue_returned(self, long long position) except -1
    @cython.locals(quorum=Quorum)
    cdef int _requeue(self, long long position, bint failed) except -1
    cpdef int requeue_uncounted(self, long long position, bint redelivered) except -1
    cpdef int restore(self, long long position, bint redelivered) except -1
    cpdef int reject(self, long long position) except -1
    cpdef int time_out(self, long long position) except -1
    cpdef int pause(self, long long position) except -1
    cpdef int sync_soon(self) except -1
    @cython.locals(message=Message, quorum=Quorum)
    cpdef int dead_letter(self, long long position, str reason) except -1
    @cython.locals(limits=Limits)
    cpdef int admit(self, Message message) except -1
    cpdef bint withhold(self, long long position) except -1
