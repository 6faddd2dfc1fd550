from harebell.base.message cimport Message
from harebell.kernels.arrays cimport Bits, Buffer, Map, Number, Spans, Text, Texts

cdef class BatchBuilder:
    cdef readonly Py_ssize_t rows
    cdef public bint full
    cdef public int count
    cdef public bint skip
    cdef readonly long long bad
    cdef readonly long long lost
    cdef int _carried
    cdef tuple _columns
    cdef tuple _fields
    cdef bytes _queue
    cdef object _headers_of
    cdef object _json_of
    cdef object _count_of
    cdef object _convert
    cdef Py_ssize_t _max_rows
    cdef Py_ssize_t _max_bytes
    cdef Py_ssize_t _max_scanned
    cdef Py_ssize_t _byte_count
    cdef Py_ssize_t _scanned
    cdef bytes _wanted_key
    cdef bint _prefix
    cdef long long _since
    cdef long long _until
    cdef object _test
    cdef long long _cursor
    cdef long long _seen
    cdef object _held
    cdef object _fresh
    cdef object _ask
    cdef int _shift
    cdef int _level
    cdef Text _value
    cdef Texts _key
    cdef Texts _exchange
    cdef Text _queues
    cdef Number _offset
    cdef Number _time
    cdef Bits _redelivered
    cdef Number _counts
    cdef Map _headers
    cdef Text _json
    cdef Text _raw
    cdef bint _reads_properties
    cdef bint _reads_headers
    cdef list _texts
    cdef list _numbers
    cdef list _kept
    cdef Spans _spans
    cdef Buffer _last
    cdef int _found[14]
    cdef int _found_count
    cdef bint _has_table
    cdef Py_ssize_t _alike

    cpdef int message(self, Message message, long long position) except -1
    cpdef bint damaged(self, long long position) except -1
    cdef int row(self, long long position, long long time,
                 const unsigned char* exchange, Py_ssize_t exchange_size,
                 const unsigned char* key, Py_ssize_t key_size,
                 const unsigned char* raw, Py_ssize_t raw_size,
                 const unsigned char* body, Py_ssize_t body_size) except -1
    cdef int _failed(self, bint again) noexcept
    cdef bint _again(self, long long position) except -1
    cdef bint _passes(self, long long time, const unsigned char* key, Py_ssize_t size) noexcept
    cdef int _add_properties(self, const unsigned char* raw, Py_ssize_t n, bint again) except -1
    cdef int _expect(self, Py_ssize_t body_size) except -1
    cdef int _settle(self) except -1
    cdef int _look(self, const unsigned char* raw, Py_ssize_t n) except -1
    cdef int _add_table(self, const unsigned char* p, Py_ssize_t n, bint again) except -1
    cdef int _add_json(self, const unsigned char* p, Py_ssize_t n) except -1
