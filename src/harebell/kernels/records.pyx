"""Encode and check the records of the message log, in C.

records.py beside this file is the same in pure Python; both agree byte for byte. Numbers in a
record are little-endian (store/FORMAT.md), unlike those on the wire. They are written byte by
byte, so alignment and the processor's byte order do not matter; compilers make one store of it.
"""

from cpython.buffer cimport PyBUF_WRITE
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.memoryview cimport PyMemoryView_FromMemory
from cpython.ref cimport Py_XDECREF
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcmp, memcpy, memset

from harebell.base.message cimport Message
from harebell.kernels.octets cimport utf8

cdef extern from *:
    """
    #include <stdint.h>
    #include <stddef.h>
    #include <string.h>

    /* CRC-32C (Castagnoli, reflected polynomial 0x82F63B78).

       Table t gives the remainder of a byte with t zero bytes behind it, so that eight bytes
       take eight independent look-ups ("slicing by 8"). The processor's own instruction is used
       where it exists; -1 means that it is not known yet whether it does.

       Each instruction waits three cycles for the one before it, and one can begin per cycle, so
       three strands of equal length are computed side by side. The remainder of a strand with the
       length of another one of zero bytes behind it is looked up byte by byte. */
    #define HAREBELL_CRC_LONG 2048
    #define HAREBELL_CRC_SHORT 64
    static uint32_t harebell_crc_table[8][256];
    static uint32_t harebell_crc_shift[2][4][256];
    static int harebell_crc_hardware = -1;

    static uint32_t harebell_crc_portable(uint32_t crc, const unsigned char *p, size_t n);

    static void harebell_crc_prepare_shift(uint32_t shift[4][256], size_t length) {
        static const unsigned char zeros[HAREBELL_CRC_LONG];
        for (int byte = 0; byte < 4; byte++)
            for (int bit = 0; bit < 8; bit++) {
                uint32_t one = harebell_crc_portable(1u << (8 * byte + bit), zeros, length);
                for (int n = 0; n < 1 << bit; n++)
                    shift[byte][n | 1 << bit] = shift[byte][n] ^ one;
            }
    }

    static void harebell_crc_prepare(void) {
        for (int n = 0; n < 256; n++) {
            uint32_t c = (uint32_t)n;
            for (int k = 0; k < 8; k++) c = c & 1 ? (c >> 1) ^ 0x82F63B78u : c >> 1;
            harebell_crc_table[0][n] = c;
        }
        for (int n = 0; n < 256; n++)
            for (int t = 1; t < 8; t++) {
                uint32_t before = harebell_crc_table[t - 1][n];
                harebell_crc_table[t][n] = (before >> 8) ^ harebell_crc_table[0][before & 0xFF];
            }
        harebell_crc_prepare_shift(harebell_crc_shift[0], HAREBELL_CRC_LONG);
        harebell_crc_prepare_shift(harebell_crc_shift[1], HAREBELL_CRC_SHORT);
    #if defined(__x86_64__)
        harebell_crc_hardware = __builtin_cpu_supports("sse4.2") ? 1 : 0;
    #else
        harebell_crc_hardware = 0;
    #endif
    }

    static uint32_t harebell_crc_portable(uint32_t crc, const unsigned char *p, size_t n) {
        while (n >= 8) {
            uint32_t low = crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16
                                  | (uint32_t)p[3] << 24);
            crc = harebell_crc_table[7][low & 0xFF] ^ harebell_crc_table[6][low >> 8 & 0xFF]
                ^ harebell_crc_table[5][low >> 16 & 0xFF] ^ harebell_crc_table[4][low >> 24]
                ^ harebell_crc_table[3][p[4]] ^ harebell_crc_table[2][p[5]]
                ^ harebell_crc_table[1][p[6]] ^ harebell_crc_table[0][p[7]];
            p += 8;
            n -= 8;
        }
        while (n--) crc = (crc >> 8) ^ harebell_crc_table[0][(crc ^ *p++) & 0xFF];
        return crc;
    }

    #if defined(__x86_64__)
    #if defined(__clang__)
    __attribute__((target("sse4.2,crc32")))  /* clang counts the instruction apart */
    #else
    __attribute__((target("sse4.2")))
    #endif
    static uint32_t harebell_crc_sse42(uint32_t crc, const unsigned char *p, size_t n) {
        uint64_t wide = crc;
        for (int size = 0; size < 2; size++) {
            const size_t length = size ? HAREBELL_CRC_SHORT : HAREBELL_CRC_LONG;
            const uint32_t (*shift)[256] = harebell_crc_shift[size];
            while (n >= 3 * length) {
                uint64_t second = 0, third = 0;
                for (size_t at = 0; at < length; at += 8) {
                    uint64_t a, b, c;
                    memcpy(&a, p + at, 8);
                    memcpy(&b, p + length + at, 8);
                    memcpy(&c, p + 2 * length + at, 8);
                    wide = __builtin_ia32_crc32di(wide, a);
                    second = __builtin_ia32_crc32di(second, b);
                    third = __builtin_ia32_crc32di(third, c);
                }
                second ^= shift[0][wide & 0xFF] ^ shift[1][wide >> 8 & 0xFF]
                    ^ shift[2][wide >> 16 & 0xFF] ^ shift[3][wide >> 24 & 0xFF];
                third ^= shift[0][second & 0xFF] ^ shift[1][second >> 8 & 0xFF]
                    ^ shift[2][second >> 16 & 0xFF] ^ shift[3][second >> 24 & 0xFF];
                wide = third;
                p += 3 * length;
                n -= 3 * length;
            }
        }
        while (n >= 8) {
            uint64_t word;
            memcpy(&word, p, 8);  /* one load, allowed at any address */
            wide = __builtin_ia32_crc32di(wide, word);
            p += 8;
            n -= 8;
        }
        crc = (uint32_t)wide;
        while (n--) crc = __builtin_ia32_crc32qi(crc, *p++);
        return crc;
    }
    #endif

    static uint32_t harebell_crc(uint32_t crc, const unsigned char *p, size_t n) {
        if (harebell_crc_hardware < 0) harebell_crc_prepare();
        crc = ~crc;
    #if defined(__x86_64__)
        if (harebell_crc_hardware) return ~harebell_crc_sse42(crc, p, n);
    #endif
        return ~harebell_crc_portable(crc, p, n);
    }
    """
    unsigned int harebell_crc(unsigned int crc, const unsigned char* p, size_t n) nogil
    void harebell_crc_prepare() nogil
    unsigned int harebell_crc_portable(unsigned int crc, const unsigned char* p, size_t n) nogil

cdef extern from "Python.h":
    ctypedef struct PyVarObject:
        Py_ssize_t ob_size
    PyObject* new_bytes "PyBytes_FromStringAndSize"(const char* data, Py_ssize_t size) except NULL
    int _PyBytes_Resize(PyObject** data, Py_ssize_t size) except -1
    char* raw_string "PyBytes_AS_STRING"(PyObject* data)

HEAD_BYTES = 36
MESSAGE = 1
SETTLED = 2
SEEN = 3
COUNT = 4
CLOSED = 5
STAGED = 16

cdef enum:
    HEAD = 36                   # octets of the fixed part
    COVERED = 8                 # where the part under the checksum begins: after size and checksum
    ALIGN = 8                   # records begin at multiples of this: recovery searches only there
    KIND_MESSAGE = 1
    # Bits of the flags octet.
    HAS_HEADERS = 1
    HAS_PRIORITY = 2
    KEEP = 4
    STAGED_ROW = 16
    DUE = 8
    DUE_OCTETS = 8
    NAME_MAX = 255
    FAMILY = 9                  # FAMILY_09: the others are converted
    CARRIED = 255               # CARRIED_DELIVERIES in base/limits.py
    FIRST_CAPACITY = 512
    # A buffer starts at most this large, and grows to this before it grows further: room for what a
    # log gathers before it writes (WRITE_EARLY_BYTES in store/limits.py), and a record more.
    USUAL_MAX = 1638400

# The names of the last message read. The next one mostly has the same, and no text is created then.
cdef str _last_exchange = ""
cdef str _last_key = ""


cdef inline void put32(unsigned char* p, unsigned int v) noexcept:
    p[0] = v & 0xFF
    p[1] = (v >> 8) & 0xFF
    p[2] = (v >> 16) & 0xFF
    p[3] = (v >> 24) & 0xFF


cdef inline void put64(unsigned char* p, unsigned long long v) noexcept:
    put32(p, <unsigned int>(v & 0xFFFFFFFFU))
    put32(p + 4, <unsigned int>(v >> 32))


cdef inline unsigned int get32(const unsigned char* p) noexcept:
    return (<unsigned int>p[0] | <unsigned int>p[1] << 8 | <unsigned int>p[2] << 16
            | <unsigned int>p[3] << 24)


cdef inline unsigned long long get64(const unsigned char* p) noexcept:
    return <unsigned long long>get32(p) | <unsigned long long>get32(p + 4) << 32


cdef inline void put_head(unsigned char* p, unsigned int size, long long position, long long time,
                          int kind, int flags, int mode, int priority) noexcept:
    put32(p, size)
    put64(p + 8, <unsigned long long>position)
    put64(p + 16, <unsigned long long>time)
    p[24] = <unsigned char>kind
    p[25] = <unsigned char>flags
    p[26] = <unsigned char>mode
    p[27] = <unsigned char>priority


def crc32c(const unsigned char[:] data, unsigned int crc=0):
    """Return the CRC-32C (Castagnoli) of bytes, continued from `crc`."""
    # `&data[0]` of an empty buffer is out of bounds.
    if data.shape[0] == 0:
        return crc
    # The GIL is held: 64 KiB take a few microseconds, less than a switch of threads.
    return harebell_crc(crc, &data[0], <size_t>data.shape[0])


def crc32c_portable(const unsigned char[:] data, unsigned int crc=0):
    """Return the CRC-32C computed without the processor's instruction."""
    harebell_crc_prepare()
    if data.shape[0] == 0:
        return crc
    return ~harebell_crc_portable(~crc, &data[0], <size_t>data.shape[0]) & 0xFFFFFFFF


cdef class RecordBuffer:
    """A buffer of records that wait to be written; see records.py."""

    def __cinit__(self, long long start, unsigned int seed):
        self._bytes = NULL
        self._base = NULL
        self._capacity = 0
        self._last = FIRST_CAPACITY
        self.start = start
        self.size = 0
        self._seed = seed

    def __dealloc__(self):
        Py_XDECREF(self._bytes)

    cdef unsigned char* _room(self, Py_ssize_t more) except NULL:
        """Return the address for the next record, with room for `more` bytes."""
        cdef Py_ssize_t wanted = self.size + more
        cdef Py_ssize_t capacity = self._capacity
        cdef PyObject* grown
        if wanted > capacity:
            if self._bytes == NULL:
                # As large as last time: growing in steps would copy everything again.
                capacity = max(self._last, wanted)
                # A little more, by a hash of the seed: logs that get the same messages would all
                # grow, and copy, at the same message. The multiplier is Knuth's (2^32 / golden
                # ratio); the shift keeps its five highest bits, so up to 31/32 is added.
                capacity += (capacity >> 5) * <Py_ssize_t>((self._seed * 2654435761u) >> 27)
                capacity = max(min(capacity, <Py_ssize_t>USUAL_MAX), wanted)
                self._bytes = new_bytes(NULL, capacity)
            else:
                # Not resized in place: if that fails, the records gathered so far must survive.
                if capacity < USUAL_MAX:
                    capacity = min(capacity * 2, <Py_ssize_t>USUAL_MAX)
                else:
                    capacity *= 2
                capacity = max(capacity, wanted)
                grown = new_bytes(NULL, capacity)
                memcpy(raw_string(grown), self._base, self.size)
                Py_XDECREF(self._bytes)
                self._bytes = grown
            self._capacity = capacity
            self._base = <unsigned char*>raw_string(self._bytes)
        return self._base + self.size

    cpdef int raw(self, bytes data) except -1:
        cdef Py_ssize_t n = PyBytes_GET_SIZE(data)
        memcpy(self._room(n), PyBytes_AS_STRING(data), n)
        self.size += n
        return 0

    cpdef long long message(self, long long position, long long time, Message message,
                            int keep) except -1:
        cdef Py_ssize_t exchange_size = 0
        cdef Py_ssize_t key_size = 0
        cdef const char* exchange = utf8(message.exchange, &exchange_size)
        cdef const char* key = utf8(message.routing_key, &key_size)
        cdef Py_ssize_t raw_size = PyBytes_GET_SIZE(message.raw)
        cdef Py_ssize_t body_size = PyBytes_GET_SIZE(message.body)
        cdef Py_ssize_t due_size = DUE_OCTETS if message.due > 0 else 0
        cdef Py_ssize_t size = HEAD + due_size + exchange_size + key_size + raw_size + body_size
        # Rounded up to a multiple of ALIGN, which is a power of two.
        cdef Py_ssize_t padded = (size + ALIGN - 1) & ~(<Py_ssize_t>(ALIGN - 1))
        cdef unsigned char* begin = self._room(padded)
        cdef unsigned char* p = begin
        cdef int flags = 0
        # Nothing is appended yet: the buffer counts a record only at the end, with `size`.
        if exchange_size > NAME_MAX or key_size > NAME_MAX:
            raise ValueError(f"a name has at most {NAME_MAX} octets")
        if message.has_headers:
            flags |= HAS_HEADERS
        if message.priority >= 0:
            flags |= HAS_PRIORITY
        if keep:
            flags |= KEEP | (keep & STAGED_ROW)
        if due_size:
            flags |= DUE
        put_head(p, <unsigned int>size, position, time, KIND_MESSAGE, flags,
                 message.delivery_mode, message.priority if message.priority >= 0 else 0)
        p[28] = <unsigned char>exchange_size
        p[29] = <unsigned char>key_size
        p[30] = message.family
        p[31] = <unsigned char>min(message.deliveries, CARRIED)
        put32(p + 32, <unsigned int>raw_size)
        p += HEAD
        if due_size:
            put64(p, <unsigned long long>message.due)
            p += DUE_OCTETS
        memcpy(p, exchange, exchange_size)
        p += exchange_size
        memcpy(p, key, key_size)
        p += key_size
        memcpy(p, PyBytes_AS_STRING(message.raw), raw_size)
        p += raw_size
        memcpy(p, PyBytes_AS_STRING(message.body), body_size)
        memset(begin + size, 0, padded - size)
        # The checksum comes last, for it covers all that follows it, without the padding. The seed
        # is the checksum of the log's identity: a record of another log never passes for one of it.
        put32(begin + 4, harebell_crc(self._seed, begin + COVERED, size - COVERED))
        self.size += padded
        return self.start + self.size - padded

    cpdef Py_ssize_t rows(self, long long position, long long time, Rows rows, Py_ssize_t first,
                          Py_ssize_t end, int keep, long long limit,
                          SettledBitmap positions) except -1:
        """Append the records of rows that differ in their bodies only; see the twin."""
        cdef Py_ssize_t row = first, fixed = 0, n = 0, size, padded
        cdef const unsigned char* body = NULL
        cdef unsigned char* begin
        cdef bytes whole
        cdef const char* like
        if first >= end:
            return 0
        # The record of the first row is the pattern of the others, up to its body.
        whole = self._pattern(position, time, rows.message(first), keep, &fixed)
        like = PyBytes_AS_STRING(whole)
        # One row in any case: a single one may be larger than the limit.
        while row < end and (row == first or self.size < limit):
            rows._body(row, &body, &n)
            size = fixed + n
            padded = (size + ALIGN - 1) & ~(<Py_ssize_t>(ALIGN - 1))
            begin = self._room(padded)
            memcpy(begin, like, fixed)
            memcpy(begin + fixed, body, n)
            memset(begin + size, 0, padded - size)
            # Size, position and checksum are all that differs from the pattern, beside the body.
            put32(begin, <unsigned int>size)
            put64(begin + COVERED, <unsigned long long>(position + row - first))
            put32(begin + 4, harebell_crc(self._seed, begin + COVERED, size - COVERED))
            positions.add(<unsigned int>(self.start + self.size))
            self.size += padded
            row += 1
        return row - first

    cdef bytes _pattern(self, long long position, long long time, Message message, int keep,
                        Py_ssize_t* fixed):
        """Return what the record of a message has before its body, and set its size."""
        cdef Py_ssize_t before = self.size, size
        cdef bytes found
        # Encoded behind the last record, copied, and dropped again by setting the size back.
        self.message(position, time, message, keep)
        size = get32(self._base + before) - PyBytes_GET_SIZE(message.body)
        found = PyBytes_FromStringAndSize(<const char*>self._base + before, size)
        fixed[0] = size
        self.size = before
        return found

    cpdef long long note(self, int kind, long long position, long long time,
                         bytes payload) except -1:
        cdef Py_ssize_t more = PyBytes_GET_SIZE(payload)
        cdef Py_ssize_t size = HEAD + more
        cdef Py_ssize_t padded = (size + ALIGN - 1) & ~(<Py_ssize_t>(ALIGN - 1))
        cdef unsigned char* p = self._room(padded)
        # The head of a note leaves octets unused, and the padding is no data: neither may carry old
        # memory of the process into the file.
        memset(p, 0, padded)
        put_head(p, <unsigned int>size, position, time, kind, 0, 0, 0)
        memcpy(p + HEAD, PyBytes_AS_STRING(payload), more)
        put32(p + 4, harebell_crc(self._seed, p + COVERED, size - COVERED))
        self.size += padded
        return self.start + self.size - padded

    cpdef Message read(self, long long offset):
        cdef Py_ssize_t at = <Py_ssize_t>(offset - self.start)
        if at < 0 or at + HEAD > self.size:
            return None
        return decode(self._base, self.size, at)

    cpdef bint append_to(self, long long offset, long long position, BatchBuilder into) except -1:
        cdef Py_ssize_t at = <Py_ssize_t>(offset - self.start)
        if at < 0 or at + HEAD > self.size:
            return False
        return append_record_to(self._base, self.size, at, position, into)

    cpdef object view(self):
        """Return everything without a copy; see the twin."""
        # Not read-only: who keeps the octets must know that they change.
        return PyMemoryView_FromMemory(<char*>self._base, self.size, PyBUF_WRITE)

    cpdef int empty_at(self, long long start) except -1:
        """Empty the buffer, which keeps its memory; see the twin."""
        self.start = start
        self.size = 0
        return 0

    cpdef bytes take(self):
        """Return everything and empty the buffer, which gives its memory away; see the twin."""
        cdef bytes taken
        if self.size == 0:
            self._release()
            return b""
        # Less by an eighth at most: small commits come between large ones.
        self._last = max(self.size, self._last - (self._last >> 3), <Py_ssize_t>FIRST_CAPACITY)
        # There is no other reference to the object yet, so shrinking it in place is allowed. What a
        # little would be cut off for others would keep the next buffer out of this place.
        if self.size < self._capacity // 2:
            _PyBytes_Resize(&self._bytes, self.size)
        else:
            (<PyVarObject*>self._bytes).ob_size = self.size
            self._base[self.size] = 0
        taken = <bytes>(<object>self._bytes)
        self._release()
        self.start += self.size
        self.size = 0
        return taken

    cdef int _release(self) except -1:
        """Give up the memory."""
        Py_XDECREF(self._bytes)
        self._bytes = NULL
        self._base = NULL
        self._capacity = 0
        return 0


cpdef Py_ssize_t message_size(Message message) except -1:
    """Return the size of a message's record in a file; see records.py."""
    cdef Py_ssize_t exchange = 0
    cdef Py_ssize_t key = 0
    cdef Py_ssize_t size
    utf8(message.exchange, &exchange)
    utf8(message.routing_key, &key)
    if exchange > NAME_MAX or key > NAME_MAX:
        raise ValueError(f"a name has at most {NAME_MAX} octets")
    size = HEAD + exchange + key + PyBytes_GET_SIZE(message.raw) + PyBytes_GET_SIZE(message.body)
    if message.due > 0:
        size += DUE_OCTETS
    return (size + ALIGN - 1) & ~(<Py_ssize_t>(ALIGN - 1))


cpdef Py_ssize_t record_size(bytes data, Py_ssize_t at) except -1:
    """Return the size in the head of the record at an index; 0 if the head is incomplete."""
    if at < 0 or at + 4 > PyBytes_GET_SIZE(data):
        return 0
    return get32(<const unsigned char*>PyBytes_AS_STRING(data) + at)


cdef bint whole(const unsigned char* base, Py_ssize_t n, Py_ssize_t at, unsigned int seed) noexcept:
    """True if there is a whole record with the right checksum."""
    cdef Py_ssize_t size
    if at < 0 or at + HEAD > n:
        return False
    size = get32(base + at)
    # The size is not under the checksum: a damaged one may claim more than there is to read.
    if size < HEAD or at + size > n:
        return False
    return harebell_crc(seed, base + at + COVERED, size - COVERED) == get32(base + at + 4)


cpdef bint good(bytes data, Py_ssize_t at, unsigned int seed) except -1:
    """True if there is a whole record with the right checksum at an index."""
    return whole(<const unsigned char*>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), at, seed)


def head(bytes data, Py_ssize_t at):
    """Return (position, time, kind, size) of the record at an index, which must be `good`."""
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(data) + at
    if at < 0 or at + HEAD > PyBytes_GET_SIZE(data):
        raise ValueError("there is no record")
    return get64(p + 8), get64(p + 16), p[24], get32(p)


def is_row(bytes data, Py_ssize_t at):
    """True if the record at an index is a row of a staged batch."""
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(data)
    return at >= 0 and PyBytes_GET_SIZE(data) >= at + HEAD and (p[at + 25] & STAGED_ROW) != 0


def payload(bytes data, Py_ssize_t at):
    """Return the bytes after the fixed part of the record at an index, which must be `good`."""
    return data[at + HEAD:at + record_size(data, at)]


cdef str _text(const char* p, Py_ssize_t n, str last):
    """Decode a text; return the last one again if the bytes are the same."""
    cdef Py_ssize_t known = 0
    cdef const char* octets = utf8(last, &known)
    if known == n and memcmp(octets, p, n) == 0:
        return last
    return PyUnicode_DecodeUTF8(p, n, NULL)


cdef struct Sizes:
    # Octets of the parts of a message's record, in their order.
    Py_ssize_t fixed
    Py_ssize_t exchange
    Py_ssize_t key
    Py_ssize_t raw
    Py_ssize_t body


cdef inline bint measure(const unsigned char* base, Py_ssize_t n, Py_ssize_t at,
                         Sizes* of) noexcept:
    """Find the parts of a message; False if it does not fit or is another record."""
    cdef const unsigned char* p = base + at
    cdef Py_ssize_t size = get32(p)
    if size < HEAD or at + size > n or p[24] != KIND_MESSAGE:
        return False
    of.fixed = HEAD + DUE_OCTETS if p[25] & DUE else HEAD
    of.exchange = p[28]
    of.key = p[29]
    of.raw = get32(p + 32)
    # The body is what is left. A record that was read without its checksum may leave less than
    # nothing.
    of.body = size - of.fixed - of.exchange - of.key - of.raw
    return of.body >= 0


cdef Message decode(const unsigned char* base, Py_ssize_t n, Py_ssize_t at):
    """Decode a message; None if it does not fit or is another record."""
    global _last_exchange, _last_key
    cdef const unsigned char* p = base + at
    cdef Sizes of
    cdef Message message
    if not measure(base, n, at, &of):
        return None
    # `__new__` runs no `__init__` of Python: every field is set below.
    message = Message.__new__(Message)
    try:
        _last_exchange = _text(<const char*>p + of.fixed, of.exchange, _last_exchange)
        _last_key = _text(<const char*>p + of.fixed + of.exchange, of.key, _last_key)
    except UnicodeDecodeError:
        return None
    message.exchange = _last_exchange
    message.routing_key = _last_key
    message.delivery_mode = p[26]
    message.priority = p[27] if p[25] & HAS_PRIORITY else -1
    message.has_headers = (p[25] & HAS_HEADERS) != 0
    message.family = p[30]
    message.timestamp = <long long>get64(p + 16)
    message.offset = -1
    message.deliveries = p[31]
    message.due = <long long>get64(p + HEAD) if p[25] & DUE else 0
    p += of.fixed + of.exchange + of.key
    message.raw = PyBytes_FromStringAndSize(<const char*>p, of.raw)
    message.body = PyBytes_FromStringAndSize(<const char*>p + of.raw, of.body)
    return message


cpdef Py_ssize_t body_start(bytes data, Py_ssize_t at) except -1:
    """Return the size of a message's record before its body; 0 if the head is incomplete."""
    cdef const unsigned char* p = <const unsigned char*>PyBytes_AS_STRING(data) + at
    if at < 0 or at + HEAD > PyBytes_GET_SIZE(data) or p[24] != KIND_MESSAGE:
        return 0
    return (HEAD + (DUE_OCTETS if p[25] & DUE else 0) + p[28] + p[29]
            + <Py_ssize_t>get32(p + 32))


cpdef Message parse(bytes data, Py_ssize_t at, long long seed=-1):
    """Decode the message at an index; None if there is no whole, valid one."""
    cdef const unsigned char* base = <const unsigned char*>PyBytes_AS_STRING(data)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(data)
    if at < 0 or at + HEAD > n:
        return None
    if seed >= 0 and not whole(base, n, at, <unsigned int>seed):
        return None
    return decode(base, n, at)


cdef bint append_record_to(const unsigned char* base, Py_ssize_t n, Py_ssize_t at,
                           long long position, BatchBuilder into) except -1:
    """Add a message to a batch as a row; False if it does not fit or is another record."""
    cdef const unsigned char* p = base + at
    cdef Sizes of
    cdef long long time
    cdef Message message
    if not measure(base, n, at, &of):
        return False
    if p[30] != FAMILY or p[31]:
        # Another protocol family, whose properties are converted; or with failed deliveries.
        message = decode(base, n, at)
        if message is None:
            return False
        into.message(message, position)
        return True
    time = <long long>get64(p + 16)
    cdef const unsigned char* exchange = p + of.fixed
    cdef const unsigned char* key = exchange + of.exchange
    cdef const unsigned char* raw = key + of.key
    into.row(position, time, exchange, of.exchange, key, of.key, raw, of.raw, raw + of.raw, of.body)
    return True


cpdef bint append_to(bytes data, Py_ssize_t at, long long position, long long seed,
                     BatchBuilder into) except -1:
    """Add the message at an index to a batch as a row; False if there is no whole, valid one."""
    cdef const unsigned char* base = <const unsigned char*>PyBytes_AS_STRING(data)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(data)
    if at < 0 or at + HEAD > n:
        return False
    if seed >= 0 and not whole(base, n, at, <unsigned int>seed):
        return False
    return append_record_to(base, n, at, position, into)


def find_good(bytes data, Py_ssize_t begin, unsigned int seed, unsigned long long low,
              unsigned long long high):
    """Return the first index from `begin` on with a good record, or -1; see records.py."""
    cdef const unsigned char* base = <const unsigned char*>PyBytes_AS_STRING(data)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(data)
    cdef Py_ssize_t at = begin
    cdef unsigned long long position
    while at + HEAD <= n:
        if get32(base + at) >= HEAD:
            # The position is checked before the checksum: it is cheap, and rules out nearly every
            # place where no record begins.
            position = get64(base + at + 8)
            if low <= position <= high and whole(base, n, at, seed):
                return at
        at += ALIGN
    return -1


def scan(bytes data, Py_ssize_t at, long long base, unsigned int seed, SettledBitmap positions):
    """Read consecutive good messages from an index on; see records.py."""
    cdef const unsigned char* octets = <const unsigned char*>PyBytes_AS_STRING(data)
    cdef Py_ssize_t n = PyBytes_GET_SIZE(data)
    cdef long long newest = 0
    cdef long long position
    cdef Py_ssize_t size
    while at + HEAD <= n and whole(octets, n, at, seed):
        position = <long long>get64(octets + at + 8)
        # Other kinds, and positions with a gap, are for the caller: recovery treats them in Python.
        if octets[at + 24] != KIND_MESSAGE or position != positions.first + positions.count:
            break
        positions.add(<unsigned int>(base + at))
        # A transient message of a durable queue does not survive a restart.
        if not octets[at + 25] & KEEP:
            positions.settle(position)
        newest = <long long>get64(octets + at + 16)
        size = get32(octets + at)
        at += (size + ALIGN - 1) & ~(<Py_ssize_t>(ALIGN - 1))
    return at, newest
