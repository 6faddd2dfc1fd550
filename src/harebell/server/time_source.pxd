cimport cython
from harebell.base.clock cimport Clock

cdef double _MS

cdef class MachineTime:
    cpdef double monotonic(self) except? -1
    cpdef long long wall_ms(self) except? -1

cdef class BrokerClock(Clock):
    cdef object _source
    cdef long long _passed

    @cython.locals(now=double)
    cpdef double read(self) except? -1
