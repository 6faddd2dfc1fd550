"""Fuzzed: conversations in AMQP 1.0 of performatives in any order, legal and nearly legal.

The octets of an input are choices, not frames: which performative comes next, on which channel and
handle, with which fields. So the fuzzer goes far into the states of sessions, links and
transactions, where `connections1` mostly finds what cannot be decoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, TypeVar

from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import EMPTY
from harebell.wire.v1.sections import data_section, encode_message, value_section
from harebell.wire.v1.values import Described, Symbol, UInt, ULong
from tests.fuzz.connections1 import sent, talk
from tests.fuzz.splits import anyhow

T = TypeVar("T")

MOST_STEPS = 60
_NUMBERS = (0, 1, 2, 3, 10, 100, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1)
_SMALL = (0, 1, 2, 3, 7, 255, 256)
_NAMES = ("s", "r", "a", "b", "")
_TAGS = (b"0", b"1", bytes(4), b"", b"t" * 32, b"t" * 33)
_TXNS = (b"\0\0\0\1", b"\0\0\0\2", b"", b"none")
_POLICIES = ("link-detach", "session-end", "connection-close", "never", "other")
_ADDRESSES = (
    *("/queues/q", "/queues/p", "/queues/none", "q", "", None, "/queue/made", "/topic/a.b"),
    *("/exchanges/amq.topic/k", "/exchanges/none/k", "/exchange/amq.fanout", "/management", "$cbs"),
    *("/queues/%zz", "/amq/queue/q", "/queue"),
)
_SELECTOR = Symbol("apache.org:selector-filter:string")
_FILTERS: tuple[Any, ...] = (
    None,
    {},
    {"f": Described(_SELECTOR, "a = 1")},
    {"f": Described(_SELECTOR, "a = ")},
    {"f": Described(Symbol("rabbitmq:stream-offset-spec"), "first")},
    {"f": Described(ULong(0x173), {Symbol("subject"): "s"})},
    {"f": 1},
)
_CAPABILITIES = ("topic", "queue", "shared", "global", "temporary-topic", "none")
_LINK_PROPERTIES: tuple[Any, ...] = (
    None,
    {Symbol("paired"): True},
    {Symbol("rabbitmq:priority"): -1},
    {Symbol("rabbitmq:consumer-timeout"): UInt(1)},
    {Symbol("paired"): "x"},
)
_PATHS = ("/queues/m", "/queues/q", "/exchanges/e", "/bindings?src=e&dstq=m", "/bindings", "/x", "")
_METHODS = ("PUT", "GET", "DELETE", "POST", "")
_BODIES: tuple[Any, ...] = (
    None,
    {},
    {"durable": True, "arguments": {"x-queue-type": "quorum"}},
    {"source": "e", "destination_queue": "m", "arguments": {"a": 1}},
    {"type": "topic"},
    [1],
)


class Choices:
    """Choices that the octets of an input make; the first of all when there are none left."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def left(self) -> int:
        """The octets that are not used."""
        return len(self._data) - self._at

    def below(self, count: int) -> int:
        """A number."""
        if not self.left:
            return 0
        self._at += 1
        return self._data[self._at - 1] % count

    def of(self, items: Sequence[T]) -> T:
        """One of several."""
        return items[self.below(len(items))]

    def fatally(self) -> bool:
        """True once in a few dozen times: it ends a connection."""
        return self.rarely() and self.rarely()

    def rarely(self) -> bool:
        """True once in eight times."""
        return self.below(8) == 7


def _session(channel: int) -> bytes:
    """A session with a link each way."""
    source, target = c.Source("/queues/q"), c.Target("/queues/q")
    return b"".join(
        sent(each, channel=channel)
        for each in (
            c.Begin(None, 0, 100, 100),
            c.Attach(f"s{channel}", 0, False, source=c.Source(), target=target,
                     initial_delivery_count=0),
            c.Attach(f"r{channel}", 1, True, source=source, target=c.Target()),
            c.Flow(0, 100, 0, 100, 1, 0, 10),
        )
    )  # fmt: skip


class Conversation:
    """Frames that follow from choices."""

    def __init__(self, data: bytes) -> None:
        self._choose = Choices(data)
        self._delivery = 0

    def frames(self) -> list[bytes]:
        """All frames."""
        choose = self._choose
        ways = (
            *(self._transfer, self._transfer, self._transfer, self._flow, self._flow),
            *(self._disposition, self._disposition, self._attach, self._attach, self._detach),
            *(self._begin, self._end, self._control, self._request, self._other),
        )
        found = [_session(channel) for channel in (1, 2, 3)]
        while choose.left and len(found) < MOST_STEPS:
            frame = choose.of(ways)()
            if choose.fatally():
                # Nearly a frame.
                at = choose.below(255) % len(frame)
                frame = frame[:at] + bytes((choose.below(256),)) + frame[at + 1 :]
            found.append(frame)
        return found

    def _channel(self) -> int:
        if self._choose.fatally():
            return 65_535
        return self._choose.below(4)

    def _handle(self) -> int:
        return self._choose.of((0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 256, 2**32 - 1))

    def _begin(self) -> bytes:
        of = self._choose.of
        remote = 0 if self._choose.fatally() else None
        channel = self._channel()
        begin = c.Begin(remote, of(_NUMBERS), of(_NUMBERS), of(_NUMBERS), of((255, 0, 2**32 - 1)))
        return sent(c.End(), channel=channel) + sent(begin, channel=channel)

    def _end(self) -> bytes:
        return sent(c.End(self._error()), channel=self._channel())

    def _error(self) -> Any:
        return self._choose.of((None, None, c.Error("a:a", "b"), c.Error("")))

    def _attach(self) -> bytes:
        choose, of = self._choose, self._choose.of
        role = bool(choose.below(2))
        lasting: dict[str, Any] = {
            "expiry_policy": Symbol(of(_POLICIES)),
            "timeout": of((0, 0, 1, 2**32 - 1)),
        }
        if choose.below(2):
            lasting = {}
        more: dict[str, Any] = {
            "durable": 9 if choose.fatally() else of((0, 1, 2)),
            "dynamic": choose.rarely(),
            "capabilities": (of(_CAPABILITIES),) if choose.rarely() else (),
            **lasting,
        }
        address = of(_ADDRESSES)
        mode = of((None, "copy", "move", "x"))
        source: Any = c.Source(
            address if role else None, distribution_mode=mode, filter=of(_FILTERS), **more
        )
        target: Any = c.Target(None if role else address, **more)
        if not role and choose.rarely():
            target = c.Coordinator(("amqp:local-transactions",))
        if address == "/management":
            source, target = c.Source(address), c.Target(address)
        attach = c.Attach(
            *(of(_NAMES), self._handle(), role, of((0, 1, 2)), of((0, 1))),
            source=None if choose.rarely() else source,
            target=None if choose.rarely() else target,
            unsettled=of((None, None, {}, {b"0": None}, {b"1": c.Accepted(), b"0": c.Released()})),
            incomplete_unsettled=choose.rarely(),
            initial_delivery_count=of((0, 0, None, 2**32 - 1)),
            max_message_size=of((None, 0, 1, 100)),
            properties=of(_LINK_PROPERTIES),
        )
        return sent(attach, channel=self._channel())

    def _flow(self) -> bytes:
        choose, of = self._choose, self._choose.of
        session = (of(_NUMBERS), of((100, 0, 1, 2**32 - 1)), of(_NUMBERS), of((100, 0, 2**32 - 1)))
        link: dict[str, Any] = {}
        if choose.below(4):
            link = {"delivery_count": of((0, 0, 1, None, 2**32 - 1)), "available": of((None, 5))}
            link |= {"handle": self._handle(), "link_credit": of((0, 1, 5, 100, None, 2**32 - 1))}
        if choose.rarely():
            link["properties"] = {Symbol("a"): 1}
        flow = c.Flow(*session, drain=choose.rarely(), echo=choose.rarely(), **link)
        return sent(flow, channel=self._channel())

    def _transfer(self) -> bytes:
        choose, of = self._choose, self._choose.of
        number: int | None = self._delivery
        if choose.rarely():
            number = of((None, *_NUMBERS))
        more = choose.rarely()
        if not more:
            self._delivery += 1
        payload = encode_message(
            of((data_section(b"hi"), data_section(b"z" * 300), value_section({"a": [1]}))),
            of((None, c.Header(True, 7, of((None, 0, 60_000))))),
            of((None, {"x-opt-a": [1]}, {"x-cc": ["p"]}, {"x-cc": 1}, {"own": 1})),
            of((None, c.Properties("m", of((b"guest", b"other", None)), of(_ADDRESSES)))),
            of((None, {"a": 1})),
        )
        cut = choose.below(255) if choose.rarely() else len(payload)
        tag = of(_TAGS) if choose.rarely() else bytes((self._delivery % 256,))
        transfer = c.Transfer(
            self._handle(), number, tag,
            of((0, 0, 0, None, 1)), of((False, True, None)), more, of((None, None, 0, 1)),
            self._state() if choose.rarely() else None, choose.rarely(), choose.rarely(),
        )  # fmt: skip
        return sent(transfer, payload[:cut], self._channel())

    def _state(self) -> Any:
        choose, of = self._choose, self._choose.of
        outcome = of(
            (
                *(c.Accepted(), c.Accepted(), c.Released(), c.Rejected(), c.Modified(True)),
                *(c.Rejected(c.Error("a:a")), c.Modified(True, True), c.Received(0, 0)),
                *(c.Modified(message_annotations={Symbol("x-a"): 1}), c.Declared(b"1"), None),
                c.Modified(message_annotations={Symbol("own"): 1}),
            )
        )
        return c.TransactionalState(of(_TXNS), outcome) if choose.below(3) == 2 else outcome

    def _disposition(self) -> bytes:
        choose, of = self._choose, self._choose.of
        first = choose.below(12)
        if choose.rarely():
            first = of(_NUMBERS)
        last = of((None, first, (first + 1) % 2**32, (first + 2**31) % 2**32, 2**32 - 1, 0))
        found = c.Disposition(
            bool(choose.below(4)), first, last, bool(choose.below(3)), self._state()
        )
        return sent(found, channel=self._channel())

    def _detach(self) -> bytes:
        detach = c.Detach(self._handle(), bool(self._choose.below(2)), self._error())
        return sent(detach, channel=self._channel())

    def _control(self) -> bytes:
        """A transfer that a coordinator takes."""
        of = self._choose.of
        wish = of((c.Declare(), c.Discharge(of(_TXNS), False), c.Discharge(of(_TXNS), True)))
        return self._message(b"\0\x53\x77" + wish.encoded())

    def _request(self) -> bytes:
        of = self._choose.of
        properties = c.Properties(of(("1", None)), to=of(_PATHS), subject=of(_METHODS))
        return self._message(encode_message(value_section(of(_BODIES)), None, None, properties))

    def _message(self, payload: bytes) -> bytes:
        number = self._delivery
        self._delivery += 1
        settled = bool(self._choose.below(2))
        transfer = c.Transfer(self._handle(), number, number.to_bytes(4), 0, settled)
        return sent(transfer, payload, self._channel())

    def _other(self) -> bytes:
        end = c.Close(self._error()) if self._choose.fatally() else None
        return EMPTY if end is None else sent(end)


def conversation1(data: bytes) -> None:
    """A conversation ends in frames and leaves nothing, the same however its octets arrive."""
    frames = Conversation(data).frames()
    whole, _ = talk(frames)
    octets = b"".join(frames)
    answers, _ = talk(anyhow(octets, len(octets)))
    if answers != whole:
        raise AssertionError(f"the answers depend on how the octets arrived: {answers}")


TARGETS = (conversation1,)


def conversation1_seeds(count: int = 40) -> list[bytes]:
    """Where the fuzzer of conversations starts."""
    return [Random(number).randbytes(100 + 10 * number) for number in range(count)]


def told(seeds: list[bytes]) -> list[str]:
    """The answers in each conversation, for a comparison with those of another process."""
    return [repr(talk(Conversation(each).frames())[0]) for each in seeds]
