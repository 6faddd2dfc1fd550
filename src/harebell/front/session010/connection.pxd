from harebell.front.link cimport Link
from harebell.front.session010.intake cimport Intake
from harebell.kernels.segments cimport SegmentScanner
from harebell.kernels.transfers cimport SegmentBuffer

cdef class Connection(Link):
    cdef readonly SegmentBuffer frames
    cdef readonly SegmentScanner scanner
    cdef readonly Intake intake
    cdef public dict ending
    cdef public list completing
    cdef public object exchange
