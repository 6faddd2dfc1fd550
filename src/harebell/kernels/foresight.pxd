cpdef int foresee(list messages, Py_ssize_t index) except -1
