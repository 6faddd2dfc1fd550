from harebell.front.common.base_connection cimport BaseConnection
from harebell.kernels.transfers cimport SegmentBuffer

cdef class Connection(BaseConnection):
    cdef readonly SegmentBuffer frames
    cdef readonly object handlers
    cdef readonly object intake
    cdef public dict ending
    cdef public list completing
    cdef public object exchange
