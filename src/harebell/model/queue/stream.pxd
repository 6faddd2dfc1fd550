cimport cython
from harebell.base.message cimport Message, copy_message
from harebell.base.ports cimport Commit, Log
from harebell.kernels.rows cimport Rows
from harebell.model.consumer cimport Consumer
from harebell.model.queue.contract cimport Queue

cdef int _SHIFT
cdef long long _TAG
cdef int _SCAN
cdef int _PENDING
cdef int _ACCEPTED
cdef bytes _FILTER_NAME
cdef int _RECENT
cdef Py_ssize_t _RECENT_BYTES

cdef class Cursor:
    cdef readonly Consumer consumer
    cdef readonly long long position
    cdef readonly object values
    cdef readonly bint unfiltered
    cdef readonly int number
    cdef readonly object skipped
    cdef public Py_ssize_t index

cdef class StreamQueue(Queue):
    cdef Log _log
    cdef Commit _commit
    cdef object _tracking
    cdef long long _declared_bytes
    cdef long long _segment_bytes
    cdef long long _max_bytes
    cdef long long _max_age
    cdef str _tier
    cdef long long _grown
    cdef long long _visible
    cdef long long _safe
    cdef long long _barrier
    cdef list _staged
    cdef long long _ticket
    cdef long long _reached
    cdef list _flying
    cdef list _cursors
    cdef bint _shared
    cdef int _locals
    cdef dict _cursor_of
    cdef Py_ssize_t _next
    cdef list _recent
    cdef object _context
    cdef object _editor
    cdef object _clock
    cdef object _expires

    @cython.locals(position="long long")
    cpdef int publish(self, Message message) except -1
    @cython.locals(ticket="long long")
    cdef int _appended(self, long long end, long long byte_count) except -1
    cdef int _show(self, long long end) except -1
    cpdef int stage(self, Message message) except -1
    @cython.locals(count="long long", behind="long long")
    cpdef int stage_rows(
        self, Rows rows, Py_ssize_t first, Py_ssize_t end, Message like
    ) except -1
    @cython.locals(position="long long", staged=list)
    cdef int _note_rows(self, long long count) except -1
    cpdef int begin_batch(self) except -1
    cpdef int commit_batch(self) except -1
    cpdef int roll_back_batch(self) except -1
    @cython.locals(cursor=Cursor)
    cdef int _note_origin(self, long long position, long long origin) except -1
    cdef int _await(self, long long ticket) except -1
    cpdef int _retain(self) except -1
    cdef int _share_with(self, Py_ssize_t count) except -1
    cpdef int _share(self) except -1
    cpdef long long ready_count(self) except -1
    @cython.locals(cursor=Cursor, visible="long long", count=Py_ssize_t)
    cpdef int drain(self) except -1
    @cython.locals(cursor=Cursor)
    cpdef int serve(self, Consumer consumer) except -1
    @cython.locals(consumer=Consumer, position="long long", visible="long long", passed=int,
                   behind="long long", message=Message)
    cdef int _feed(self, Cursor cursor) except -1
    cdef bint _wants(self, Cursor cursor, Message message) except -1
    cpdef int settle(self, long long position) except -1
    cpdef int settle_some(self, long long position, long long count) except -1
    cpdef int reject(self, long long position) except -1
    cpdef int requeue(self, long long position) except -1
    cpdef int sync_soon(self) except -1
