cpdef int prefetch_after(list messages, Py_ssize_t index) except -1
