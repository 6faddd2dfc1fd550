"""A property list of class basic in parts, each with the octets of its publisher.

The conversions of AMQP 1.0 move octets: decoding the values of headers would lose their widths.
"""

from __future__ import annotations

from harebell.base.c_types import C, Done, i32, isize

_HEADERS: i32 = 1 << 13


class BasicParts:
    """The fourteen properties.

    Attributes:
        content_type, content_encoding, correlation_id, reply_to, expiration, message_id, type,
            user_id, app_id, cluster_id: octets of a short string; None if it is absent.
        headers: entries of the header table, without its size; None if there is no table.
        delivery_mode, priority: 0 to 255; -1 if absent.
        timestamp: seconds since 1970 as eight octets; None if absent.
    """

    def __init__(self) -> None:
        self.content_type: bytes | None = None
        self.content_encoding: bytes | None = None
        self.headers: bytes | None = None
        self.delivery_mode: i32 = -1
        self.priority: i32 = -1
        self.correlation_id: bytes | None = None
        self.reply_to: bytes | None = None
        self.expiration: bytes | None = None
        self.message_id: bytes | None = None
        self.timestamp: bytes | None = None
        self.type: bytes | None = None
        self.user_id: bytes | None = None
        self.app_id: bytes | None = None
        self.cluster_id: bytes | None = None

    def read(self, raw: bytes) -> Done:
        """Take the properties of a well-formed list."""
        flags: i32 = raw[0] << 8 | raw[1]
        offset: isize = 2
        end: isize
        if flags & 1 << 15:
            end = offset + 1 + raw[offset]
            self.content_type, offset = raw[offset + 1 : end], end
        if flags & 1 << 14:
            end = offset + 1 + raw[offset]
            self.content_encoding, offset = raw[offset + 1 : end], end
        if flags & _HEADERS:
            end = offset + 4
            end += raw[offset] << 24 | raw[offset + 1] << 16 | raw[offset + 2] << 8
            end += raw[offset + 3]
            self.headers, offset = raw[offset + 4 : end], end
        if flags & 1 << 12:
            self.delivery_mode = raw[offset]
            offset += 1
        if flags & 1 << 11:
            self.priority = raw[offset]
            offset += 1
        if flags & 1 << 10:
            end = offset + 1 + raw[offset]
            self.correlation_id, offset = raw[offset + 1 : end], end
        if flags & 1 << 9:
            end = offset + 1 + raw[offset]
            self.reply_to, offset = raw[offset + 1 : end], end
        if flags & 1 << 8:
            end = offset + 1 + raw[offset]
            self.expiration, offset = raw[offset + 1 : end], end
        if flags & 1 << 7:
            end = offset + 1 + raw[offset]
            self.message_id, offset = raw[offset + 1 : end], end
        if flags & 1 << 6:
            self.timestamp, offset = raw[offset : offset + 8], offset + 8
        if flags & 1 << 5:
            end = offset + 1 + raw[offset]
            self.type, offset = raw[offset + 1 : end], end
        if flags & 1 << 4:
            end = offset + 1 + raw[offset]
            self.user_id, offset = raw[offset + 1 : end], end
        if flags & 1 << 3:
            end = offset + 1 + raw[offset]
            self.app_id, offset = raw[offset + 1 : end], end
        if flags & 1 << 2:
            end = offset + 1 + raw[offset]
            self.cluster_id = raw[offset + 1 : end]
        return 0

    def encode(self) -> C[bytes]:
        """Return the property list."""
        out = bytearray(2)
        flags: i32 = self._text(out, self.content_type, 15)
        flags |= self._text(out, self.content_encoding, 14)
        table: bytes | None = self.headers
        if table is not None:
            flags |= _HEADERS
            out += len(table).to_bytes(4)
            out += table
        if self.delivery_mode >= 0:
            flags |= 1 << 12
            out.append(self.delivery_mode)
        if self.priority >= 0:
            flags |= 1 << 11
            out.append(self.priority)
        flags |= self._text(out, self.correlation_id, 10)
        flags |= self._text(out, self.reply_to, 9)
        flags |= self._text(out, self.expiration, 8)
        flags |= self._text(out, self.message_id, 7)
        moment: bytes | None = self.timestamp
        if moment is not None:
            flags |= 1 << 6
            out += moment
        flags |= self._text(out, self.type, 5)
        flags |= self._text(out, self.user_id, 4)
        flags |= self._text(out, self.app_id, 3)
        flags |= self._text(out, self.cluster_id, 2)
        out[0] = flags >> 8
        out[1] = flags & 255
        return bytes(out)

    def _text(self, out: bytearray, text: bytes | None, bit: i32) -> i32:
        """Append a short string; return its flag, or 0 if it is absent."""
        if text is None:
            return 0
        out.append(len(text))
        out += text
        return 1 << bit
