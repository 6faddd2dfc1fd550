cimport cython
from harebell.base.message cimport Message
from harebell.model.queue.features.limits cimport Limits
from harebell.model.queue.features.queue_internals cimport QueueInternals

@cython.locals(limits=Limits)
cpdef int subtract_ready_bytes(QueueInternals queue, Message message) except -1
@cython.locals(limits=Limits)
cpdef int add_ready_bytes(QueueInternals queue, long long position, Message message) except -1
@cython.locals(message=Message)
cpdef int add_ready_bytes_at(QueueInternals queue, long long position) except -1
