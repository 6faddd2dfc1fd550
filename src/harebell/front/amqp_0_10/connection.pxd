from harebell.front.common.framed_connection cimport FramedConnection
from harebell.kernels.transfers cimport SegmentBuffer

cdef class Connection(FramedConnection):
    cdef readonly SegmentBuffer frames
    cdef readonly object handlers
    cdef readonly object intake
    cdef public dict ending
    cdef public list completing
    cdef public object exchange
