from harebell.base.message cimport Message, Properties
from harebell.kernels.arrays cimport Buffer
from harebell.kernels.output cimport OutBuffer

cdef struct Column:
    bint there
    const unsigned char* valid
    const unsigned char* offsets
    const unsigned char* data
    Py_ssize_t size

cdef class Rows:
    cdef readonly Py_ssize_t rows
    cdef public long long number_from
    cdef public Py_ssize_t frame_max
    cdef readonly Properties properties
    cdef tuple _columns
    cdef tuple _fields
    cdef str _exchange_default
    cdef str _key_default
    cdef bytes _exchange_octets
    cdef bytes _key_octets
    cdef int _mode
    cdef bytes _data
    cdef list _spans
    cdef Py_ssize_t _at
    cdef Py_ssize_t _entries
    cdef str _last_exchange
    cdef bytes _last_exchange_octets
    cdef str _last_key
    cdef bytes _last_key_octets
    cdef Buffer _raw_list
    cdef Column _value
    cdef Column _key
    cdef Column _exchange
    cdef Column _struct
    cdef Column _map
    cdef Column _names
    cdef Column _values
    cdef Column _raw
    cdef Column _of[14]

    cdef int _forget(self) except -1
    cpdef int load(self, bytes data, Py_ssize_t rows, Py_ssize_t entries, object spans) except -1
    cdef const unsigned char* _span(self, str name, Py_ssize_t* size) except? NULL
    cdef const unsigned char* _sized(self, str name, str what, Py_ssize_t minimum) except? NULL
    cdef const unsigned char* _validity(self, Py_ssize_t rows, str name) except? NULL
    cdef const unsigned char* _offsets(self, Py_ssize_t rows, str name) except? NULL
    cdef int _load_text(self, Column* column, Py_ssize_t rows, str name) except -1
    cdef int _load_field(self, str name, Py_ssize_t rows) except -1
    cpdef Message message(self, Py_ssize_t row)
    cdef Properties _parsed(self, Py_ssize_t row)
    cpdef Py_ssize_t same_until(self, Py_ssize_t first, Py_ssize_t end) except -1
    cdef bint _same(self, Column* column, Py_ssize_t row, bytes default, const unsigned char* p,
                    Py_ssize_t n) noexcept
    cpdef long long body_bytes(self, Py_ssize_t first, Py_ssize_t end) except -1
    cpdef Py_ssize_t publish(self, OutBuffer out, int channel, int flags, Py_ssize_t frame_max,
                             Py_ssize_t first, Py_ssize_t end) except -1
    cdef int _publish(self, OutBuffer out, int channel, int flags, Py_ssize_t frame_max,
                      Py_ssize_t row) except -1
    cdef int _check(self, Py_ssize_t row) except -1
    cdef int _check_frame(self, Py_ssize_t row, Py_ssize_t frame_max) except -1
    cdef int _range(self, const unsigned char* offsets, Py_ssize_t row, Py_ssize_t limit, str name,
                    Py_ssize_t at, int* first, int* end) except -1
    cdef bint _text(self, Column* column, Py_ssize_t row, str name, Py_ssize_t at,
                    const unsigned char** p, Py_ssize_t* n) except -1
    cdef bint _short(self, Column* column, Py_ssize_t row, str name, Py_ssize_t at,
                     const unsigned char** p, Py_ssize_t* n) except -1
    cdef bint _checked_name(self, Column* column, Py_ssize_t row, str name,
                            const unsigned char** p, Py_ssize_t* n) except -1
    cdef int _body(self, Py_ssize_t row, const unsigned char** p, Py_ssize_t* n) except -1
    cdef str _exchange_text(self, Py_ssize_t row)
    cdef str _key_text(self, Py_ssize_t row)
    cdef int _build(self, Py_ssize_t row) except -1
    cdef bint _put_property(self, int number, Py_ssize_t row) except -1
    cdef bint _put_headers(self, Py_ssize_t row) except -1
    cdef int _put_map(self, Py_ssize_t row) except -1
