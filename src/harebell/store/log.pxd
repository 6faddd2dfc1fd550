cimport cython
from harebell.base.clock cimport Clock
from harebell.base.gauge cimport Gauge
from harebell.base.message cimport Message
from harebell.kernels.batches cimport BatchBuilder
from harebell.kernels.records cimport RecordBuffer
from harebell.store.commit cimport GroupCommit
from harebell.store.notes cimport Notes
from harebell.store.reader cimport Reader
from harebell.store.row cimport Row
from harebell.store.segment cimport Segment

cdef int _PERSISTENT
cdef long long _FIRST_LIMIT
cdef long long _LAST_LIMIT
cdef long long _MEMORY
cdef long long _RESET
cdef long long _EARLY

cdef class SegmentLog(Row):
    cdef readonly str identity
    cdef readonly bint durable
    cdef readonly str folder
    cdef readonly unsigned int seed
    cdef public bint dirty
    cdef object _store
    cdef GroupCommit _commit
    cdef Gauge _gauge
    cdef Clock _clock
    cdef bint _keep_all
    cdef long long _limit
    cdef Reader _reader
    cdef Segment _tail
    cdef long long _held
    cdef long long _usual
    cdef long long _seen
    cdef Notes _notes
    cdef list _leaving
    cdef list _sealed
    cdef list _early
    cdef long long _early_from
    cdef object _counted
    cdef object _unreadable
    cdef bint _gone

    @cython.locals(tail=Segment, keep=bint, buffer=RecordBuffer, before=Py_ssize_t,
                   position="long long", now="long long", grown=Py_ssize_t)
    cpdef long long append(self, Message message) except -1
    @cython.locals(segment=Segment, message=Message, offset="long long")
    cpdef Message read(self, long long position)
    @cython.locals(segment=Segment)
    cpdef int settle(self, long long position) except -1
    @cython.locals(segment=Segment, builder=BatchBuilder, last="long long")
    cpdef long long pour(self, long long position, long long end, object into) except -1
    @cython.locals(well=bint)
    cdef bint _pour_one(self, Segment segment, long long position, BatchBuilder builder) except -1
    cpdef int settle_range(self, long long first, long long end) except -1
    cpdef int see(self, long long position) except -1
    cpdef long long seen(self) except -1
    cpdef int count(self, long long position) except -1
    cpdef list counted(self)
    cpdef int set_count(self, long long position, int count) except -1
    cpdef long long time_of(self, long long position) except -1
    cpdef long long at_time(self, long long moment) except -1
    cpdef long long retain(self, long long octets, long long moment) except -1
    cpdef int cut_at(self, long long octets) except -1
    cpdef int sync_soon(self) except -1
    cpdef int delete(self) except -1
    cpdef int close(self) except -1
    cdef int _touch(self) except -1
    cdef Segment _next_segment(self)
    cdef int _write_early(self, Segment segment) except -1
    cdef int _emptied(self, Segment segment) except -1
