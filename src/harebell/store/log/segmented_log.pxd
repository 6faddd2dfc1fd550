cimport cython
from harebell.base.clock cimport Clock
from harebell.base.gauge cimport Gauge
from harebell.base.message cimport Message
from harebell.base.ports cimport Log
from harebell.kernels.batches cimport BatchBuilder
from harebell.kernels.settled_bitmap cimport SettledBitmap
from harebell.store.log.reader cimport Reader
from harebell.store.log.segment cimport Segment

cdef long long _LARGE

cdef class SegmentedLog(Log):
    cdef readonly str identity
    cdef readonly str directory
    cdef readonly unsigned int seed
    cdef public list segments
    cdef Segment _near
    cdef long long _end
    cdef long long _live
    cdef long long _held
    cdef object _store
    cdef Gauge _gauge
    cdef Clock _clock
    cdef Reader _reader
    cdef object _counted
    cdef object _unreadable

    @cython.locals(segment=Segment, live="long long")
    cpdef long long next(self, long long position) except -1
    cpdef long long first(self) except -1
    cpdef long long end(self) except -1
    cpdef long long live(self) except -1
    @cython.locals(
        segment=Segment,
        reached="long long",
        count="long long",
        total="long long",
        room="long long",
        stop="long long",
        more="long long",
        size="long long",
        live="long long",
    )
    cpdef tuple reach(
        self, long long position, long long end, long long messages, long long byte_count
    )
    @cython.locals(segment=Segment, live="long long")
    cpdef long long live_in(self, long long first, long long end) except -1
    cpdef long long byte_count(self) except -1
    @cython.locals(near=Segment, segment=Segment, index="long long", nearest=Py_ssize_t)
    cdef Segment _find(self, long long position)
    cdef Py_ssize_t _index(self, long long position) except -1

    @cython.locals(segment=Segment, message=Message, offset="long long")
    cpdef Message read(self, long long position)
    @cython.locals(segment=Segment)
    cpdef bint is_spilled(self, long long position) except -1
    @cython.locals(segment=Segment, builder=BatchBuilder, last="long long")
    cpdef long long append_to(self, long long position, long long end, object into) except -1
    @cython.locals(well=bint)
    cdef bint _append_one_to(
        self, Segment segment, long long position, BatchBuilder builder
    ) except -1
    cdef bint _append_record_to(
        self, Segment segment, long long position, BatchBuilder builder
    ) except -1
    cpdef int count(self, long long position) except -1
    cpdef list counted(self)
    cdef bint _set_count(self, long long position, int count) except -1
    cpdef long long time_of(self, long long position) except -1
    @cython.locals(
        segment=Segment, low="long long", high="long long", middle="long long", live="long long"
    )
    cpdef long long at_time(self, long long moment) except -1
    cpdef long long retain(
        self, long long byte_count, long long moment, long long below=*
    ) except -1
    cdef int _load_offsets(self, Segment segment) except -1
    cdef int _emptied(self, Segment segment) except -1
    cdef int _leave(self, Segment segment) except -1
    cpdef int release(self, Segment segment, long long byte_count) except -1
    cdef int _forget_counts(self, long long first, long long end) except -1
