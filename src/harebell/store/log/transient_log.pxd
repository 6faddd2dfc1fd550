cimport cython
from harebell.base.message cimport Message, copy_message
from harebell.kernels.batches cimport BatchBuilder
from harebell.kernels.prefetch cimport prefetch_after
from harebell.kernels.records cimport RecordBuffer, message_size
from harebell.kernels.settled_bitmap cimport SettledBitmap
from harebell.store.log.segmented_log cimport SegmentedLog
from harebell.store.log.segment cimport Segment

cdef long long _FIRST_LIMIT
cdef long long _LAST_LIMIT
cdef long long _MEMORY
cdef long long _RESET
cdef Py_ssize_t _SHARED_BY
cdef Py_ssize_t _LARGE
cdef long long _SPILLED

cdef class TransientSegment(Segment):
    cdef readonly long long size
    cdef public bint spills
    cdef public bint written
    cdef object _since
    cdef object _times

    cpdef long long end(self) except -1
    cpdef int stamp(self, long long now) except -1
    cpdef long long time_of(self, long long position) except -1

cdef class TransientLog(SegmentedLog):
    cdef long long _limit
    cdef TransientSegment _tail

    @cython.locals(tail=TransientSegment, messages=list, size="long long", byte_count="long long",
                   position="long long", now="long long")
    cpdef long long append(self, Message message) except -1
    @cython.locals(segment=Segment, messages=list, index=Py_ssize_t, message=Message)
    cpdef Message read(self, long long position)
    @cython.locals(segment=Segment)
    cpdef int settle(self, long long position) except -1
    cpdef int see(self, long long position) except -1
    @cython.locals(messages=list, message=Message, index=Py_ssize_t, byte_count=Py_ssize_t)
    cdef int _release(self, Segment segment, long long position) except -1
    @cython.locals(message=Message)
    cdef bint _append_one_to(
        self, Segment segment, long long position, BatchBuilder builder
    ) except -1
    @cython.locals(near=Segment, segment=Segment, low="long long", high="long long")
    cpdef int settle_range(self, long long first, long long end) except -1
    @cython.locals(messages=list, message=Message, index=Py_ssize_t, byte_count=Py_ssize_t,
                   done="long long")
    cdef int _settle_in(self, Segment segment, long long first, long long end) except -1
    cpdef long long seen(self) except -1
    cpdef int set_count(self, long long position, int count) except -1
    @cython.locals(segment=Segment)
    cpdef long long time_of(self, long long position) except -1
    cpdef int cut_at(self, long long byte_count) except -1
    cpdef int sync_soon(self) except -1
    cpdef int delete(self) except -1
    cdef TransientSegment _own_segment(self, TransientSegment tail)
    @cython.locals(tail=TransientSegment, room=bint, objects=bint, fresh=TransientSegment)
    cdef TransientSegment _next_segment(self, bint large=*)
    cpdef long long in_memory(self) except -1
    @cython.locals(messages=list, message=Message, position="long long", gap="long long",
                   byte_count=Py_ssize_t, buffer=RecordBuffer, positions=SettledBitmap)
    cdef _to_records(self, TransientSegment segment)
    @cython.locals(messages=list, message=Message)
    cdef bint _is_shared(self, TransientSegment segment) except -1
    cdef bint _spill(self, TransientSegment segment) except -1
    @cython.locals(messages=list, index=Py_ssize_t)
    cdef int _emptied(self, Segment segment) except -1

@cython.locals(copy=Message)
cdef Message _bare(Message message)
