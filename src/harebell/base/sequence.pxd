cimport cython

cdef int CHUNK_SHIFT
cdef int CHUNK_SIZE
cdef int CHUNK_MASK
cdef int GAP_CHUNKS

cdef class Chunk:
    cdef readonly long long index
    cdef readonly list items
    cdef readonly int live

cdef class Sequence:
    cdef readonly long long next
    cdef readonly long long count
    cdef long long _first
    cdef dict _chunks
    cdef Chunk _tail
    cdef Chunk _recent

    @cython.locals(number="long long")
    cpdef long long append(self, object member) except -1
    @cython.locals(index="long long", chunk=Chunk)
    cpdef int put(self, long long number, object member) except -1
    @cython.locals(index="long long", chunk=Chunk)
    cpdef object get(self, long long number)
    @cython.locals(index="long long", chunk=Chunk, offset=int)
    cpdef object take(self, long long number)
    @cython.locals(begin="long long", index="long long", chunk=Chunk, items=list, offset=int,
                   stop=int, before=int, same=bint)
    cpdef long long take_run(self, long long number, long long last) except -1
    cpdef long long first(self) except -1
    @cython.locals(chunk=Chunk, missing=int)
    cpdef long long next_from(self, long long number) except -1
    cdef int _drop(self, Chunk chunk) except -1
