cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.features.expiry cimport Expiry
from harebell.model.queue.features.queue_internals cimport QueueInternals
from harebell.model.queue.features.ready_bytes cimport subtract_ready_bytes
from harebell.model.queue.order.contract cimport MessageOrder

cdef int _EXPIRED_PER_TURN

@cython.locals(expiry=Expiry)
cpdef int kept_until(QueueInternals queue, long long due) except -1
@cython.locals(expiry=Expiry)
cpdef int check_head(QueueInternals queue) except -1
@cython.locals(now="long long", earliest="long long", due="long long", head=int)
cpdef int expire_heads(QueueInternals queue) except -1
@cython.locals(order=MessageOrder, message=Message)
cdef long long _expire_head(QueueInternals queue, int head, long long now) except -1
