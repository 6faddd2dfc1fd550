"""Numbers in network byte order, read in C. Whoever calls has seen that the octets are there."""


cdef inline unsigned int u16(const unsigned char* p) noexcept:
    return (<unsigned int>p[0] << 8) | p[1]


cdef inline unsigned int u32(const unsigned char* p) noexcept:
    return (<unsigned int>p[0] << 24) | (<unsigned int>p[1] << 16) | (p[2] << 8) | p[3]


cdef inline unsigned long long u64(const unsigned char* p) noexcept:
    return (<unsigned long long>u32(p) << 32) | u32(p + 4)
