cimport cython
from harebell.base.message cimport Message
from harebell.kernels.records cimport RecordBuffer
from harebell.store.commit cimport GroupCommit
from harebell.store.log.settlement_buffer cimport SettlementBuffer
from harebell.store.log.segmented_log cimport SegmentedLog
from harebell.store.log.segment cimport Segment

cdef int _PERSISTENT
cdef long long _EARLY
cdef long long _EARLY_MAX
cdef int _STAGED
cdef Py_ssize_t _LARGE

cdef class DurableLog(SegmentedLog):
    cdef public bint dirty
    cdef GroupCommit _commit
    cdef bint _keep_all
    cdef long long _limit
    cdef Segment _tail
    cdef long long _seen
    cdef long long _mark
    cdef SettlementBuffer _settlements
    cdef list _leaving
    cdef list _sealed
    cdef list _early
    cdef long long _early_from
    cdef bint _gone
    cdef bint _closing
    cdef long long _staging
    cdef long long _row_bytes
    cdef bint _marks
    cdef list _unsynced

    @cython.locals(tail=Segment, keep=int, buffer=RecordBuffer, before=Py_ssize_t,
                   position="long long", now="long long", grown=Py_ssize_t)
    cpdef long long append(self, Message message) except -1
    @cython.locals(tail=Segment, buffer=RecordBuffer, keep=int, before=Py_ssize_t,
                   begin="long long", now="long long", grown=Py_ssize_t, limit="long long",
                   count=Py_ssize_t)
    cpdef long long append_rows(
        self, object rows, Py_ssize_t first, Py_ssize_t end, Message like
    ) except -1
    cdef Segment _own_segment(self)
    cdef int _stage(self) except -1
    @cython.locals(segment=Segment)
    cpdef int settle(self, long long position) except -1
    @cython.locals(near=Segment, segment=Segment, low="long long", high="long long")
    cpdef int settle_range(self, long long first, long long end) except -1
    @cython.locals(done="long long")
    cdef int _settle_in(self, Segment segment, long long first, long long end) except -1
    cpdef int see(self, long long position) except -1
    cpdef long long seen(self) except -1
    cpdef int set_count(self, long long position, int count) except -1
    cpdef int cut_at(self, long long byte_count) except -1
    cpdef int sync_soon(self) except -1
    cpdef int delete(self) except -1
    cpdef int close(self) except -1
    cdef int _touch(self) except -1
    cdef Segment _next_segment(self)
    cdef int _write_early(self, Segment segment) except -1
    cdef int _add_early(self, Segment segment) except -1
    cdef int _emptied(self, Segment segment) except -1
