from harebell.front.common.framed_connection cimport ScannedLink
from harebell.front.amqp_0_10.intake cimport Intake
from harebell.kernels.transfers cimport SegmentBuffer

cdef class Connection(ScannedLink):
    cdef readonly SegmentBuffer frames
    cdef readonly Intake intake
    cdef public dict ending
    cdef public list completing
    cdef public object exchange
