from harebell.base.message cimport Message
from harebell.model.consumer cimport Consumer
from harebell.model.queue.contract cimport Queue

cdef class ReplyQueue(Queue):
    cdef dict _replies
    cdef list _staged
