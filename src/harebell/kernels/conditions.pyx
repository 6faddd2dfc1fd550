"""Evaluate conditions on messages in C, with three truth values; conditions.py is the same.

The headers that a condition needs are found in one pass over the encoded table, the first time that
one of them is needed. Texts are compared where they lie. What is rare (other families, types
without a comparison in C, functions of the decoded message) goes through the decoded message.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.ref cimport PyObject
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from harebell.base.message cimport Message
from harebell.kernels.octets cimport u16, u32, u64

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from harebell.base.message import (
    FAMILY_010,
    FAMILY_09,
    FAMILY_1_0,
    FAMILY_1_0_SECTIONS,
    FAMILY_FILE,
    FAMILY_STREAM,
)

LITERAL, ANY_CHARACTER, ANY_TEXT = 0, 1, 2

cdef object _EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
cdef object _MILLISECOND = timedelta(milliseconds=1)

cdef enum:
    # Kinds of values. SLOW: the decoded message has it.
    NOTHING = 0
    TRUTH = 1
    INTEGER = 2
    REAL = 3
    TEXT = 4
    OPAQUE = 5
    SLOW = 6

cdef enum:
    VALUE = 0
    HEADER = 1
    PROPERTY = 2
    GET = 3
    AND = 4
    OR = 5
    NOT = 6
    EQUAL = 7
    UNEQUAL = 8
    LESS = 9
    LESS_EQUAL = 10
    MORE = 11
    MORE_EQUAL = 12
    PLUS = 13
    MINUS = 14
    TIMES = 15
    DIVIDED = 16
    MODULO = 17
    NEGATIVE = 18
    IS_NULL = 19
    LIKE = 20
    MATCH = 21
    DEFAULT = 22
    IN = 23
    BETWEEN = 24
    NATIVE = 25

cdef enum:
    NINE = 9
    TEN = 10
    FILE = 70
    STREAM = 80
    ONE = 100
    ONE_SECTIONS = 101
    PROPERTIES = 14         # of class basic; their flags are the bits from 15 down
    SLOTS = 20              # with those that only 1.0 has
    TIMESTAMP = 9
    APP_ID = 12
    GROUP_ID = 16
    EXPIRES_AT = 19
    TABLE_BIT = 13
    # A text of more octets is compared by `match`, which says how much of a text counts.
    LIKE_MAX = 1024
    MS = 1000

cdef long long LAST_DATETIME = 253402300799

assert (FAMILY_09, FAMILY_010, FAMILY_FILE, FAMILY_STREAM) == (NINE, TEN, FILE, STREAM)
assert (FAMILY_1_0, FAMILY_1_0_SECTIONS) == (ONE, ONE_SECTIONS)

cdef dict _OPS = {
    "value": VALUE, "header": HEADER, "property": PROPERTY, "get": GET, "and": AND, "or": OR,
    "not": NOT, "=": EQUAL, "<>": UNEQUAL, "<": LESS, "<=": LESS_EQUAL, ">": MORE,
    ">=": MORE_EQUAL, "+": PLUS, "-": MINUS, "*": TIMES, "/": DIVIDED, "%": MODULO,
    "neg": NEGATIVE, "null": IS_NULL, "like": LIKE, "match": MATCH, "else": DEFAULT, "in": IN,
    "between": BETWEEN, "native": NATIVE,
}
cdef tuple _PROPERTY_NAMES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id",
    "reply_to", "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
    "subject", "to", "group_id", "group_sequence", "reply_to_group_id", "absolute_expiry_time",
)
# By the index of a field in the properties of 1.0.
cdef int[13] _SLOT_OF = [8, 11, 15, 14, 6, 5, 0, 1, 19, 9, 16, 17, 18]

cdef extern from *:
    """
    #define harebell_add(a, b, r) __builtin_saddll_overflow(a, b, r)
    #define harebell_sub(a, b, r) __builtin_ssubll_overflow(a, b, r)
    #define harebell_mul(a, b, r) __builtin_smulll_overflow(a, b, r)
    """
    bint add_overflows "harebell_add"(long long a, long long b, long long* r) noexcept
    bint sub_overflows "harebell_sub"(long long a, long long b, long long* r) noexcept
    bint mul_overflows "harebell_mul"(long long a, long long b, long long* r) noexcept


cdef class Condition:
    """A condition, ready to be evaluated; see conditions.py."""

    def __cinit__(self):
        self._nodes = NULL
        self._children = NULL
        self._headers = NULL
        self._properties = NULL
        self._count = self._child_count = 0

    def __init__(self, tuple tree not None, bint plain):
        cdef Py_ssize_t slots
        self._plain = plain
        self._objects = []
        self._names = []
        self._alive = []
        self._root = self._compile(tree)
        slots = len(self._names)
        self._headers = <Value*>malloc(max(slots, 1) * sizeof(Value))
        self._properties = <Value*>malloc(SLOTS * sizeof(Value))
        if self._headers == NULL or self._properties == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._nodes)
        free(self._children)
        free(self._headers)
        free(self._properties)

    # --- compile --------------------------------------------------------------------------------

    cdef int _add(self, int op, int left, int right) except -1:
        """Add a node; return its index."""
        cdef Node* grown = <Node*>realloc(self._nodes, (self._count + 1) * sizeof(Node))
        if grown == NULL:
            raise MemoryError
        self._nodes = grown
        memset(&grown[self._count], 0, sizeof(Node))
        grown[self._count].op = op
        grown[self._count].left = left
        grown[self._count].right = right
        self._count += 1
        return self._count - 1

    cdef int _compile(self, tuple node) except -1:
        cdef int op = _OPS[node[0]], index, left, first
        cdef int* grown
        cdef Value value
        cdef list indices
        if op == AND or op == OR or op == IN or op == BETWEEN:
            first = 1 if op == AND or op == OR else 2
            indices = [self._compile(each) for each in node[first:]]
            first = self._child_count
            grown = <int*>realloc(self._children, (first + len(indices)) * sizeof(int))
            if grown == NULL:
                raise MemoryError
            self._children = grown
            for left in indices:
                self._children[self._child_count] = left
                self._child_count += 1
            index = self._add(op, first, self._child_count)
            if op == IN or op == BETWEEN:
                self._nodes[index].constant.size = self._object(node[1])
            return index
        if op == VALUE:
            index = self._add(op, 0, 0)
            self._take(node[1], &value)
            self._nodes[index].constant = value
            # A constant outlives each evaluation.
            self._objects.extend(self._alive)
            self._alive.clear()
            return index
        if op == HEADER:
            name = node[1].encode("utf-8", "surrogateescape")
            if name not in self._names:
                self._names.append(name)
            return self._add(op, self._names.index(name), 0)
        if op == PROPERTY:
            return self._add(op, _PROPERTY_NAMES.index(node[1]), 0)
        if op == GET:
            return self._add(op, 0, self._object(node[1]))
        left = self._compile(node[1])
        if op == NOT or op == NEGATIVE or op == IS_NULL:
            return self._add(op, left, 0)
        if op == LIKE or op == MATCH:
            return self._add(op, left, self._object(node[2:]))
        if op == DEFAULT or op == NATIVE:
            return self._add(op, left, self._compile(node[2]))
        index = self._add(op, left, self._compile(node[2]))
        if op <= MORE_EQUAL:
            self._nodes[index].constant.size = self._object(node[3])
        return index

    def _object(self, thing):
        """Keep an object that a node refers to; return its index."""
        self._objects.append(thing)
        return len(self._objects) - 1

    # --- evaluate -------------------------------------------------------------------------------

    cpdef int test(self, Message message, object looker) except -2:
        self._message = message
        self._looker = looker
        self._has_headers = self._has_properties = False
        try:
            return self._truth(self._root)
        finally:
            self._message = None
            self._looker = self._decoded = None
            if self._alive:
                self._alive.clear()

    cpdef object value(self, Message message, object looker):
        cdef Value value
        self._message = message
        self._looker = looker
        self._has_headers = self._has_properties = False
        try:
            self._value(self._root, &value)
            return _object_of(&value)
        finally:
            self._message = None
            self._looker = self._decoded = None
            if self._alive:
                self._alive.clear()

    cdef int _truth(self, int index) except -2:
        cdef Node* node = &self._nodes[index]
        cdef int op = node.op, at, truth, decisive
        cdef bint unknown
        cdef Value value
        if op == AND or op == OR:
            decisive = op == OR
            unknown = False
            for at in range(node.left, node.right):
                truth = self._truth(self._children[at])
                if truth == decisive:
                    return decisive
                unknown = unknown or truth < 0
            return -1 if unknown else 1 - decisive
        if op == NOT:
            truth = self._truth(node.left)
            return truth if truth < 0 else 1 - truth
        if op == IS_NULL:
            self._value(node.left, &value)
            return value.kind == NOTHING
        if EQUAL <= op <= MORE_EQUAL:
            return self._compare(node)
        if op == LIKE or op == MATCH:
            return self._match(node)
        if op == IN:
            return self._is_in(node)
        if op == BETWEEN:
            return self._is_between(node)
        self._value(index, &value)
        return <int>value.integer if value.kind == TRUTH else -1

    cdef int _value(self, int index, Value* out) except -1:
        cdef Node* node = &self._nodes[index]
        cdef int op = node.op, truth
        cdef bint native
        if op == VALUE:
            out[0] = node.constant
            return 0
        if op == HEADER:
            return self._header(node.left, out)
        if op == PROPERTY:
            return self._property(node.left, out)
        if op == GET:
            return self._take((<object>self._objects[node.right])(self._whole()), out)
        if op == DEFAULT:
            self._value(node.left, out)
            if out.kind == NOTHING:
                return self._value(node.right, out)
            return 0
        if op == NATIVE:
            native = self._message.family == ONE or self._message.family == ONE_SECTIONS
            return self._value(node.left if native else node.right, out)
        if PLUS <= op <= NEGATIVE:
            return self._arithmetic(node, out)
        truth = self._truth(index)
        out.kind = NOTHING if truth < 0 else TRUTH
        out.integer = truth
        return 0

    cdef object _whole(self):
        """Return the decoded message."""
        if self._decoded is None:
            self._decoded = self._looker.decoded(self._message)
        return self._decoded

    cdef int _take(self, object value, Value* out) except -1:
        """Take a value of Python."""
        if isinstance(value, (bytes, bytearray)):
            value = bytes(value).decode("utf-8", "replace")
        if self._plain:
            if isinstance(value, Decimal):
                value = float(value)
            elif isinstance(value, datetime):
                value = (value - _EPOCH) // _MILLISECOND
        if value is None:
            out.kind = NOTHING
        elif isinstance(value, bool):
            out.kind = TRUTH
            out.integer = value is True
        elif isinstance(value, int):
            try:
                out.integer = value
                out.kind = INTEGER
            except OverflowError:
                out.real = float(value)
                out.kind = REAL
        elif isinstance(value, float):
            out.kind = REAL
            out.real = value
        elif isinstance(value, str):
            text = value.encode("utf-8", "surrogateescape")
            self._alive.append(text)
            out.kind = TEXT
            out.text = PyBytes_AS_STRING(text)
            out.size = PyBytes_GET_SIZE(text)
        else:
            self._alive.append(value)
            out.kind = OPAQUE
            out.thing = <void*>value
        return 0

    cdef int _compare(self, Node* node) except -2:
        cdef Value a, b
        self._value(node.left, &a)
        if a.kind == NOTHING:
            return -1
        self._value(node.right, &b)
        return self._compared(node.op, &a, &b, self._objects[node.constant.size])

    cdef int _is_in(self, Node* node) except -2:
        """Compare the first child, which is evaluated once, with the others."""
        cdef Value a, b
        cdef int at, truth
        cdef bint unknown = False
        self._value(self._children[node.left], &a)
        if a.kind == NOTHING:
            return -1
        mixed = self._objects[node.constant.size]
        for at in range(node.left + 1, node.right):
            self._value(self._children[at], &b)
            truth = self._compared(EQUAL, &a, &b, mixed)
            if truth == 1:
                return 1
            unknown = unknown or truth < 0
        return -1 if unknown else 0

    cdef int _is_between(self, Node* node) except -2:
        """Compare the first of three children, which is evaluated once, with both others."""
        cdef Value a, b
        cdef int low, high
        self._value(self._children[node.left], &a)
        if a.kind == NOTHING:
            return -1
        mixed = self._objects[node.constant.size]
        self._value(self._children[node.left + 1], &b)
        low = self._compared(MORE_EQUAL, &a, &b, None if mixed is None else mixed[0])
        if low == 0:
            return 0
        self._value(self._children[node.left + 2], &b)
        high = self._compared(LESS_EQUAL, &a, &b, None if mixed is None else mixed[1])
        return low if high == 1 else high

    cdef int _compared(self, int op, Value* first, Value* second, object mixed) except -2:
        cdef Value a = first[0], b = second[0]
        cdef int order
        cdef double x, y
        if a.kind == NOTHING or b.kind == NOTHING:
            return -1
        if a.kind == INTEGER and b.kind == INTEGER:
            order = (a.integer > b.integer) - (a.integer < b.integer)
        elif a.kind == TEXT and b.kind == TEXT:
            if (op == EQUAL or op == UNEQUAL) and a.size != b.size:
                return op == UNEQUAL
            order = memcmp(a.text, b.text, min(a.size, b.size))
            if order == 0:
                order = (a.size > b.size) - (a.size < b.size)
        elif (a.kind == INTEGER or a.kind == REAL) and (b.kind == INTEGER or b.kind == REAL):
            x = a.real if a.kind == REAL else <double>a.integer
            y = b.real if b.kind == REAL else <double>b.integer
            if x != x or y != y:
                # Not a number: it is unequal to everything.
                return op == UNEQUAL
            order = (x > y) - (x < y)
        elif a.kind == TRUTH and b.kind == TRUTH and (op == EQUAL or op == UNEQUAL):
            order = a.integer != b.integer
        else:
            if mixed is None:
                return False
            truth = mixed(_object_of(&a), _object_of(&b))
            return -1 if truth is None else truth is True
        if op == EQUAL:
            return order == 0
        if op == UNEQUAL:
            return order != 0
        if op == LESS:
            return order < 0
        if op == LESS_EQUAL:
            return order <= 0
        if op == MORE:
            return order > 0
        return order >= 0

    cdef int _arithmetic(self, Node* node, Value* out) except -1:
        cdef Value a, b
        cdef int op = node.op
        cdef double x, y
        cdef bint over
        if op == NEGATIVE:
            op = MINUS
            a.kind = INTEGER
            a.integer = 0
            self._value(node.left, &b)
        else:
            self._value(node.left, &a)
            self._value(node.right, &b)
        out.kind = NOTHING
        if (a.kind != INTEGER and a.kind != REAL) or (b.kind != INTEGER and b.kind != REAL):
            return 0
        if op == MODULO:
            if a.kind == INTEGER and b.kind == INTEGER and b.integer:
                out.kind = INTEGER
                # The least number by -1 traps in C.
                out.integer = 0 if b.integer == -1 else a.integer % b.integer
            return 0
        if a.kind == INTEGER and b.kind == INTEGER and op != DIVIDED:
            if op == PLUS:
                over = add_overflows(a.integer, b.integer, &out.integer)
            elif op == MINUS:
                over = sub_overflows(a.integer, b.integer, &out.integer)
            else:
                over = mul_overflows(a.integer, b.integer, &out.integer)
            if not over:
                out.kind = INTEGER
                return 0
        x = a.real if a.kind == REAL else <double>a.integer
        y = b.real if b.kind == REAL else <double>b.integer
        if op == DIVIDED and y == 0:
            return 0
        out.kind = REAL
        if op == PLUS:
            out.real = x + y
        elif op == MINUS:
            out.real = x - y
        elif op == TIMES:
            out.real = x * y
        else:
            out.real = x / y
        return 0

    cdef int _match(self, Node* node) except -2:
        cdef Value value
        cdef tuple pattern
        cdef bytes octets, kinds
        self._value(node.left, &value)
        if value.kind != TEXT:
            return -1
        pattern = self._objects[node.right]
        if node.op == LIKE and value.size <= LIKE_MAX:
            octets, kinds = pattern[1], pattern[2]
            return _is_like(
                value.text, value.size, PyBytes_AS_STRING(octets), PyBytes_AS_STRING(kinds),
                PyBytes_GET_SIZE(octets),
            )
        truth = pattern[0](_object_of(&value))
        return -1 if truth is None else truth is True

    # --- what the message has -------------------------------------------------------------------

    cdef int _header(self, int slot, Value* out) except -1:
        if not self._has_headers:
            self._find_headers()
        if self._headers[slot].kind == SLOW or self._slow_headers:
            name = (<bytes>self._names[slot]).decode("utf-8", "surrogateescape")
            self._take(self._whole().headers.get(name), &self._headers[slot])
        out[0] = self._headers[slot]
        return 0

    cdef int _property(self, int slot, Value* out) except -1:
        cdef bint exact
        if not self._has_properties:
            self._find_properties()
        if self._properties[slot].kind == SLOW or self._slow_properties:
            name = _PROPERTY_NAMES[slot]
            whole = self._whole()
            exact = self._plain or slot >= PROPERTIES
            values = whole.exact if exact else whole.properties
            self._take(values.get(name), &self._properties[slot])
        out[0] = self._properties[slot]
        return 0

    cdef int _find_headers(self) except -1:
        """Find the headers of the condition in one pass; all others are skipped."""
        cdef Message message = self._message
        cdef const unsigned char* p
        cdef Py_ssize_t n, at, end, size
        cdef int slot, flags
        self._has_headers = True
        self._slow_headers = False
        for slot in range(len(self._names)):
            self._headers[slot].kind = NOTHING
        if not message.has_headers:
            return 0
        p = <const unsigned char*>PyBytes_AS_STRING(message.raw)
        n = PyBytes_GET_SIZE(message.raw)
        if message.family == NINE or message.family == FILE or message.family == STREAM:
            # Content type and encoding are in front of the table.
            flags = u16(p)
            at = 2
            if flags & 0x8000:
                at += 1 + p[at]
            if flags & 0x4000:
                at += 1 + p[at]
            if flags & (1 << TABLE_BIT) and at + 4 <= n:
                size = u32(p + at)
                if size <= n - at - 4:
                    return self._note_table(p + at + 4, size)
        elif message.family == TEN:
            at = 0
            while at + 8 <= n:
                end = at + 4 + u32(p + at)
                if end > n or end < at + 8:
                    break
                if p[at + 4] == 4 and p[at + 5] == 3:
                    return self._note_map(p + at + 6, end - at - 6)
                at = end
        elif message.family == ONE or message.family == ONE_SECTIONS:
            return self._note_sections(p, n)
        self._slow_headers = True
        return 0

    cdef int _note_table(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Note the values of a field table of 0-8 to 0-9-1."""
        cdef Py_ssize_t at = 0, size, length, slots = len(self._names)
        cdef const unsigned char* name
        cdef const unsigned char* v
        cdef bytes sought
        cdef int slot, tag
        cdef Value* value
        while at < n:
            length = p[at]
            name = p + at + 1
            at += 1 + length
            if at >= n:
                break
            tag = p[at]
            v = p + at + 1
            size = _table_width(tag)
            if size < 0:
                if n - at < 5:
                    break
                size = 4 + <Py_ssize_t>u32(v)
            at += 1 + size
            if at > n:
                break
            for slot in range(slots):
                sought = <bytes>self._names[slot]
                if PyBytes_GET_SIZE(sought) != length:
                    continue
                if memcmp(PyBytes_AS_STRING(sought), name, length) != 0:
                    continue
                value = &self._headers[slot]
                if tag == c'S' or tag == c'x':
                    value.kind = TEXT
                    value.text = <const char*>v + 4
                    value.size = size - 4
                elif tag == c'I':
                    value.kind = INTEGER
                    value.integer = <int>u32(v)
                elif tag == c'l' or tag == c'L':
                    value.kind = INTEGER
                    value.integer = <long long>u64(v)
                elif tag == c't':
                    value.kind = TRUTH
                    value.integer = v[0] != 0
                elif tag == c'b':
                    value.kind = INTEGER
                    value.integer = <signed char>v[0]
                elif tag == c'B':
                    value.kind = INTEGER
                    value.integer = v[0]
                elif tag == c's':
                    value.kind = INTEGER
                    value.integer = <short>u16(v)
                elif tag == c'u':
                    value.kind = INTEGER
                    value.integer = u16(v)
                elif tag == c'i':
                    value.kind = INTEGER
                    value.integer = u32(v)
                elif tag == c'd':
                    value.kind = REAL
                    value.real = _double(u64(v))
                elif tag == c'f':
                    value.kind = REAL
                    value.real = _float(u32(v))
                elif tag == c'V':
                    value.kind = NOTHING
                else:
                    value.kind = SLOW
        return 0

    cdef int _note_sections(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Note the application properties of a message of AMQP 1.0."""
        cdef Py_ssize_t at = 0, size
        cdef int code, slot
        cdef bint annotated = False
        while at + 3 < n and p[at] == 0 and p[at + 1] == 0x53:
            code = p[at + 2]
            at += 3
            size = _one_width(p + at, n - at)
            if size < 0:
                break
            annotated = annotated or code == 0x72
            if code == 0x74:
                if p[at] == 0xC1 and size >= 3:
                    self._note_pairs(p + at + 3, size - 3, p[at + 2])
                elif p[at] == 0xD1 and size >= 9:
                    self._note_pairs(p + at + 9, size - 9, u32(p + at + 5))
            at += size
        # What is not read to its end is decoded the slow way.
        self._slow_headers = at < n
        for slot in range(len(self._names)):
            # Annotations are headers, too, and some headers come and go with the conversion.
            if (<bytes>self._names[slot]).startswith(b"x-") and (
                annotated or (<bytes>self._names[slot]).startswith(b"x-amqp-")
            ):
                self._headers[slot].kind = SLOW
        return 0

    cdef int _note_pairs(self, const unsigned char* p, Py_ssize_t n, long long count) except -1:
        """Note the values of a map of AMQP 1.0 whose keys are texts."""
        cdef Py_ssize_t at = 0, size, length, head, slots = len(self._names)
        cdef const unsigned char* name
        cdef const unsigned char* v
        cdef bytes sought
        cdef int slot
        while at < n and count > 0:
            count -= 2
            size = _one_width(p + at, n - at)
            if size < 0:
                break
            head = 2 if p[at] == 0xA1 else 5
            name = p + at + head
            length = size - head
            at += size
            v = p + at
            size = _one_width(v, n - at)
            if size < 0:
                break
            at += size
            for slot in range(slots):
                sought = <bytes>self._names[slot]
                if PyBytes_GET_SIZE(sought) != length:
                    continue
                if memcmp(PyBytes_AS_STRING(sought), name, length) == 0:
                    _one_value(v, size, &self._headers[slot])
        return 0

    cdef int _note_map(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Note the values of the application headers in the message properties of 0-10.

        `p` is at the packing flags of the struct.
        """
        cdef int packed, bit, code, slot
        cdef Py_ssize_t at = 2, size, length, slots = len(self._names)
        cdef const unsigned char* name
        cdef const unsigned char* v
        cdef bytes sought
        cdef Value* value
        if n < 2:
            return 0
        packed = p[0] | p[1] << 8
        for bit in range(8):
            if not packed >> bit & 1:
                continue
            if at >= n:
                return 0
            if bit == 0:
                at += 8
            elif bit == 1:
                at += 16
            elif bit == 4 or bit == 5:
                at += 1 + p[at]
            else:
                if at + 2 > n:
                    return 0
                at += 2 + u16(p + at)
        # Behind its size and the number of its entries.
        at += 8
        while at < n:
            length = p[at]
            name = p + at + 1
            at += 1 + length
            if at >= n:
                break
            code = p[at]
            v = p + at + 1
            size = _map_width(code, v, n - at - 1)
            at += 1 + size
            if size < 0 or at > n:
                break
            for slot in range(slots):
                sought = <bytes>self._names[slot]
                if PyBytes_GET_SIZE(sought) != length:
                    continue
                if memcmp(PyBytes_AS_STRING(sought), name, length) != 0:
                    continue
                value = &self._headers[slot]
                if code == 0x95:
                    value.kind = TEXT
                    value.text = <const char*>v + 2
                    value.size = size - 2
                elif code == 0x21:
                    value.kind = INTEGER
                    value.integer = <int>u32(v)
                elif code == 0x31:
                    value.kind = INTEGER
                    value.integer = <long long>u64(v)
                elif code == 0x01:
                    value.kind = INTEGER
                    value.integer = <signed char>v[0]
                elif code == 0x02:
                    value.kind = INTEGER
                    value.integer = v[0]
                elif code == 0x11:
                    value.kind = INTEGER
                    value.integer = <short>u16(v)
                elif code == 0x12:
                    value.kind = INTEGER
                    value.integer = u16(v)
                elif code == 0x22:
                    value.kind = INTEGER
                    value.integer = u32(v)
                elif code == 0x33:
                    value.kind = REAL
                    value.real = _double(u64(v))
                elif code == 0x23:
                    value.kind = REAL
                    value.real = _float(u32(v))
                elif code == 0x08:
                    value.kind = TRUTH
                    value.integer = v[0] != 0
                else:
                    value.kind = SLOW
        for slot in range(slots):
            sought = <bytes>self._names[slot]
            # Headers that stand for properties come and go with the conversion.
            if sought.startswith(b"x-amqp-"):
                self._headers[slot].kind = SLOW
        return 0

    cdef int _note_fields(self, const unsigned char* p, Py_ssize_t n) except -1:
        """Note the properties of a message of 1.0, and the priority of its header."""
        cdef Py_ssize_t at = 0, size
        cdef int code, slot
        # What basic has besides them is in other sections.
        for slot in (2, 3, 7, 10, 13):
            self._properties[slot].kind = SLOW
        while at + 3 < n and p[at] == 0 and p[at + 1] == 0x53:
            code = p[at + 2]
            at += 3
            size = _one_width(p + at, n - at)
            if size < 0:
                break
            if (code == 0x70 or code == 0x73) and not self._note_list(p + at, size, code == 0x70):
                break
            at += size
        self._slow_properties = at < n
        return 0

    cdef bint _note_list(self, const unsigned char* p, Py_ssize_t n, bint of_header) except -1:
        """Note the fields of a header or of properties; False if they cannot be told apart."""
        cdef Py_ssize_t at, size
        cdef long long count
        cdef int index = 0, slot
        cdef Value* value
        if p[0] == 0xC0 and n >= 3:
            at, count = 3, p[2]
        elif p[0] == 0xD0 and n >= 9:
            at, count = 9, u32(p + 5)
        else:
            return p[0] == 0x45
        while index < count and at < n:
            size = _one_width(p + at, n - at)
            if size < 0 or index > 12:
                return False
            slot = _SLOT_OF[index]
            if of_header:
                slot = 4 if index == 1 else -1
            if slot >= 0:
                value = &self._properties[slot]
                _one_value(p + at, size, value)
                if p[at] == 0xA0 or p[at] == 0xB0:
                    value.kind = TEXT
                    value.text = <const char*>p + at + (2 if p[at] == 0xA0 else 5)
                    value.size = size - (2 if p[at] == 0xA0 else 5)
                elif p[at] == 0x83 and (slot == EXPIRES_AT or self._plain):
                    value.kind = INTEGER
                    value.integer = <long long>u64(p + at + 1)
                if slot == GROUP_ID:
                    self._properties[APP_ID] = value[0]
            at += size
            index += 1
        return index == count and at == n

    cdef int _find_properties(self) except -1:
        """Note the properties of class basic, which are in a row."""
        cdef Message message = self._message
        cdef const unsigned char* p
        cdef Py_ssize_t n, at = 2
        cdef unsigned int flags
        cdef int bit, slot
        cdef Value* value
        cdef long long seconds
        self._has_properties = True
        self._slow_properties = False
        for slot in range(SLOTS):
            self._properties[slot].kind = NOTHING
        p = <const unsigned char*>PyBytes_AS_STRING(message.raw)
        n = PyBytes_GET_SIZE(message.raw)
        if message.family == ONE or message.family == ONE_SECTIONS:
            self._note_fields(p, n)
            if not self._plain:
                for slot in range(PROPERTIES):
                    self._properties[slot].kind = SLOW
            return 0
        if message.family != NINE:
            for slot in range(PROPERTIES):
                self._properties[slot].kind = SLOW
            return 0
        flags = u16(p)
        for slot in range(PROPERTIES):
            bit = 15 - slot
            value = &self._properties[slot]
            if not flags & (1 << bit):
                continue
            if at >= n:
                continue
            if bit == TABLE_BIT:
                value.kind = SLOW
                at += 4 + <Py_ssize_t>u32(p + at)
            elif bit == 12 or bit == 11:
                value.kind = INTEGER
                value.integer = p[at]
                at += 1
            elif bit == 6:
                seconds = <long long>u64(p + at)
                at += 8
                if self._plain and 0 <= seconds <= LAST_DATETIME:
                    value.kind = INTEGER
                    value.integer = seconds * MS
                else:
                    value.kind = SLOW
            else:
                value.kind = TEXT
                value.text = <const char*>p + at + 1
                value.size = p[at]
                at += 1 + p[at]
        return 0


cdef object _object_of(Value* value):
    """Return a value as Python has it."""
    if value.kind == TRUTH:
        return value.integer != 0
    if value.kind == INTEGER:
        return value.integer
    if value.kind == REAL:
        return value.real
    if value.kind == TEXT:
        return value.text[:value.size].decode("utf-8", "replace")
    if value.kind == OPAQUE:
        return <object><PyObject*>value.thing
    return None


cdef inline double _double(unsigned long long bits) noexcept:
    cdef double value
    memcpy(&value, &bits, 8)
    return value


cdef inline double _float(unsigned int bits) noexcept:
    cdef float value
    memcpy(&value, &bits, 4)
    return value


cdef inline Py_ssize_t _table_width(int tag) noexcept:
    """Return the size of a value of a field table; -1 if its first four octets say it."""
    if tag == c'S' or tag == c'x' or tag == c'F' or tag == c'A':
        return -1
    if tag == c'V':
        return 0
    if tag == c't' or tag == c'b' or tag == c'B':
        return 1
    if tag == c's' or tag == c'u':
        return 2
    if tag == c'I' or tag == c'i' or tag == c'f':
        return 4
    if tag == c'D':
        return 5
    return 8


cdef inline Py_ssize_t _map_width(int code, const unsigned char* v, Py_ssize_t left) noexcept:
    """Return the size of a value of a map with the octets of its length; -1 if it is cut off."""
    cdef int group = code & 0xF0
    if group < 0x80:
        return 1 << (group >> 4)
    if group == 0x80:
        return 1 + v[0] if left >= 1 else -1
    if group == 0x90:
        return 2 + u16(v) if left >= 2 else -1
    if group == 0xA0:
        return 4 + <Py_ssize_t>u32(v) if left >= 4 else -1
    if group == 0xC0:
        return 5
    if group == 0xD0:
        return 9
    return 0 if group == 0xF0 else -1


cdef Py_ssize_t _one_width(const unsigned char* p, Py_ssize_t left) noexcept:
    """Return the size of a value of AMQP 1.0 with its constructor; -1 if it is cut off."""
    cdef Py_ssize_t size
    cdef int group
    if left < 1:
        return -1
    group = p[0] & 0xF0
    if group < 0x40:
        # A described value: its size is not needed often enough.
        return -1
    if group <= 0x90:
        size = 1 if group == 0x40 else 1 + (1 << ((group >> 4) - 5))
    elif group == 0xA0 or group == 0xC0 or group == 0xE0:
        size = 2 + p[1] if left >= 2 else -1
    else:
        size = 5 + <Py_ssize_t>u32(p + 1) if left >= 5 else -1
    return size if size <= left else -1


cdef int _one_value(const unsigned char* p, Py_ssize_t size, Value* value) noexcept:
    """Take a value of AMQP 1.0, if it has a comparison in C."""
    cdef int code = p[0]
    cdef const unsigned char* v = p + 1
    value.kind = INTEGER
    if code == 0xA1 or code == 0xA3:
        value.kind = TEXT
        value.text = <const char*>p + 2
        value.size = size - 2
    elif code == 0xB1 or code == 0xB3:
        value.kind = TEXT
        value.text = <const char*>p + 5
        value.size = size - 5
    elif code == 0x54 or code == 0x55 or code == 0x51:
        value.integer = <signed char>v[0]
    elif code == 0x52 or code == 0x53 or code == 0x50:
        value.integer = v[0]
    elif code == 0x43 or code == 0x44:
        value.integer = 0
    elif code == 0x71:
        value.integer = <int>u32(v)
    elif code == 0x70:
        value.integer = u32(v)
    elif code == 0x81:
        value.integer = <long long>u64(v)
    elif code == 0x61:
        value.integer = <short>u16(v)
    elif code == 0x60:
        value.integer = u16(v)
    elif code == 0x82:
        value.kind = REAL
        value.real = _double(u64(v))
    elif code == 0x72:
        value.kind = REAL
        value.real = _float(u32(v))
    elif code == 0x41 or code == 0x42:
        value.kind = TRUTH
        value.integer = code == 0x41
    elif code == 0x56:
        value.kind = TRUTH
        value.integer = v[0] != 0
    elif code == 0x40:
        value.kind = NOTHING
    else:
        value.kind = SLOW
    return 0


cdef bint _is_like(const char* t, Py_ssize_t n, const char* octets, const char* kinds,
                   Py_ssize_t m) noexcept:
    """Compare a text with a pattern: at most the product of both lengths."""
    cdef Py_ssize_t i = 0, j = 0, star = -1, mark = 0
    while i < n:
        if j < m and kinds[j] == 2:
            star = j
            mark = i
            j += 1
        elif j < m and kinds[j] == 1:
            i = _next_character(t, n, i)
            j += 1
        elif j < m and octets[j] == t[i]:
            i += 1
            j += 1
        elif star >= 0:
            # One character more belongs to the last run of any characters.
            mark = _next_character(t, n, mark)
            i = mark
            j = star + 1
        else:
            return False
    while j < m and kinds[j] == 2:
        j += 1
    return j == m


cdef inline Py_ssize_t _next_character(const char* t, Py_ssize_t n, Py_ssize_t i) noexcept:
    i += 1
    while i < n and (t[i] & 0xC0) == 0x80:
        i += 1
    return i
