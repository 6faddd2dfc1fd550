"""The frame scanner: what it calls, and that the compiled one and its twin call the same."""

from __future__ import annotations

import struct
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.base.limits import HANDSHAKE_FRAME_BYTES
from harebell.kernels.limits import FRAME_FUDGE_BYTES
from harebell.kernels.properties import parse_properties
from tests.unit.kernels import octets as o
from tests.unit.kernels.twins import outcome, recorder, twin, used

TWIN = twin("frames")
USED = used("frames")
BOTH = pytest.mark.parametrize("module", [USED, TWIN], ids=["in use", "twin"])
PLAIN = (o.PLAIN, 0, -1, False, False)
SUSPECT = b"\x01\x00\x0210"
"""A list with an expiration."""


def scanner(module: Any, *, client: bool = False, fast: bool = True) -> tuple[Any, Any]:
    sink = recorder(module)
    made = module.FrameScanner(sink)
    made.fast = fast
    made.client = client
    return made, sink


def run(module: Any, parts: list[bytes], *, client: bool, fast: bool, passes: int = 0) -> list[Any]:
    """Every call of the sink, and the error that ended it, if any."""
    scan, sink = scanner(module, client=client, fast=fast)
    sink.on_call = lambda _: None
    sink.passes = passes
    for part in parts:
        found = outcome(scan.feed, part)
        if found[0] == "raises":
            return [*sink.calls, found]
    return [*sink.calls, scan.buffered]


def flattened(calls: list[Any]) -> list[Any]:
    """Calls with every content taken apart into frames: cutting input may change how it is told."""
    flat: list[Any] = []
    for call in calls:
        if isinstance(call, tuple) and call[0] == "publish":
            _, channel, flags, exchange, key, properties, body = call
            flat += frames_of(
                o.publish(
                    body,
                    channel=channel,
                    exchange=exchange.encode(),
                    key=key.encode(),
                    flags=flags,
                    properties=properties[0],
                )
            )
        elif isinstance(call, tuple) and call[0] == "passage":
            pass
        elif isinstance(call, tuple) and call[0] == "ack":
            flat += frames_of(o.ack(call[2], channel=call[1], multiple=call[3]))
        else:
            flat.append(call)
    return flat


def frames_of(data: bytes) -> list[Any]:
    calls = run(TWIN, [data], client=False, fast=False)
    assert calls.pop() == 0
    return calls


@settings(max_examples=400, deadline=None)
@given(o.cut(o.damaged()), st.booleans(), st.booleans())
def test_both_call_the_same_for_any_input_in_any_pieces(
    parts: list[bytes], client: bool, fast: bool
) -> None:
    expected = run(TWIN, parts, client=client, fast=fast)
    assert run(USED, parts, client=client, fast=fast) == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=5), st.booleans())
def test_both_call_the_same_for_noise(parts: list[bytes], client: bool) -> None:
    assert run(USED, parts, client=client, fast=True) == run(TWIN, parts, client=client, fast=True)


good_publishes = st.lists(
    st.builds(
        o.publish,
        o.payloads,
        channel=st.integers(1, 3),
        exchange=st.sampled_from([b"", b"x", "schön".encode()]),
        key=st.sampled_from([b"", b"a.b", b"k" * 255]),
        flags=st.integers(0, 3),
        properties=st.sampled_from([o.PLAIN, o.PERSISTENT]),
    )
    | st.builds(o.ack, st.integers(0, 2**64 - 1), multiple=st.integers(0, 1)),
    max_size=8,
).map(b"".join)


@settings(max_examples=200, deadline=None)
@given(o.cut(good_publishes))
def test_how_input_is_cut_changes_nothing_but_how_contents_are_told(parts: list[bytes]) -> None:
    whole = run(USED, [b"".join(parts)], client=False, fast=True)
    pieces = run(USED, parts, client=False, fast=True)
    assert flattened(pieces) == flattened(whole)


repeated = st.lists(
    st.builds(
        lambda body, count, key, lists: b"".join(
            o.publish(body + b"+" * more, key=key, properties=lists[more % len(lists)])
            for more in range(count)
        ),
        st.binary(max_size=30),
        st.integers(1, 40),
        st.sampled_from([b"a.b", b"other"]),
        st.lists(st.sampled_from([o.PLAIN, o.PERSISTENT, SUSPECT, b"\x80"]), min_size=1),
    )
    | st.builds(o.ack, st.integers(0, 2**64 - 1)),
    max_size=5,
).map(b"".join)


def bodies_of(calls: list[Any]) -> list[bytes]:
    """The bodies that were published, came in frames, or passed, in order."""
    found: list[bytes] = []
    for call in calls:
        if isinstance(call, tuple) and call[0] == "publish":
            found.append(call[6])
        elif isinstance(call, tuple) and call[:2] == ("frame", o.BODY):
            found.append(call[3])
        elif isinstance(call, tuple) and call[:2] == ("frame", o.HEADER):
            found += [b""] * (call[3][4:12] == bytes(8))
        elif isinstance(call, tuple) and call[0] == "passed":
            delivered = run(TWIN, [call[2]], client=True, fast=True)
            assert delivered.pop() == 0
            assert len(delivered) == call[1]
            found += [each[8] for each in delivered]
    return found


@settings(max_examples=200, deadline=None)
@given(o.cut(repeated), st.integers(0, 3000))
def test_repeated_publishes_pass_in_their_order_wherever_input_is_cut(
    parts: list[bytes], passes: int
) -> None:
    calls = run(USED, parts, client=False, fast=True, passes=passes)
    assert calls == run(TWIN, parts, client=False, fast=True, passes=passes)
    usual = run(USED, [b"".join(parts)], client=False, fast=True)
    assert bodies_of(calls) == bodies_of(usual)


@settings(max_examples=200, deadline=None)
@given(o.cut(repeated), st.integers(0, 5), st.integers(0, 255), st.data())
def test_both_pass_the_same_of_damaged_input(
    parts: list[bytes], place: int, octet: int, data: st.DataObject
) -> None:
    broken = bytearray(b"".join(parts))
    if broken:
        broken[data.draw(st.integers(0, len(broken) - 1))] = octet
    used = run(USED, [bytes(broken)], client=False, fast=True, passes=2000)
    assert used == run(TWIN, [bytes(broken)], client=False, fast=True, passes=2000)


@BOTH
def test_publishes_that_repeat_their_method_pass_without_a_call_each(module: Any) -> None:
    scan, sink = scanner(module)
    sink.passes = 1 << 20
    scan.feed(b"".join(o.publish(b"%d" % number) for number in range(20)) + o.ack(9))
    told = [call[0] for call in sink.calls]
    assert told == ["publish", "passage", "passed", "ack"]
    assert sink.calls[1] == ("passage", 1, 0, "x", "a.b")
    assert sink.calls[2][1] == 19
    assert bodies_of(sink.calls) == [b"%d" % number for number in range(20)]


@BOTH
def test_after_a_short_passage_or_none_no_other_is_tried_in_the_same_input(module: Any) -> None:
    for passes, told in ((0, []), (1 << 20, ["passed"])):
        scan, sink = scanner(module)
        sink.passes = passes
        pair = o.publish(b"1") + o.publish(b"2")
        scan.feed((pair + o.ack(1)) * 3)
        calls = [call[0] for call in sink.calls if call[0] not in ("publish", "ack")]
        assert calls == ["passage", *told]
        scan.feed(pair)
        assert [call[0] for call in sink.calls].count("passage") == 2


@BOTH
def test_a_passage_ends_where_the_work_budget_does(module: Any) -> None:
    scan, sink = scanner(module)
    sink.passes = 1 << 20
    scan.work.begin(10)
    scan.feed(b"".join(o.publish(b"%d" % number) for number in range(200)))
    assert scan.hold
    assert scan.cut
    first = bodies_of(sink.calls)
    assert 1 < len(first) < 200
    scan.hold = scan.cut = False
    scan.work.end()
    scan.feed(b"")
    assert bodies_of(sink.calls) == [b"%d" % number for number in range(200)]


@BOTH
def test_what_does_not_pass_goes_the_usual_way(module: Any) -> None:
    scan, sink = scanner(module)
    sink.passes = 100
    scan.feed(b"".join(o.publish(b"%2d" % number + b"b" * 20) for number in range(9)))
    told = [call[0] for call in sink.calls]
    assert told[:3] == ["publish", "passage", "passed"]
    assert "publish" in told[3:]
    assert [body[:2] for body in bodies_of(sink.calls)] == [b"%2d" % number for number in range(9)]


@BOTH
def test_a_whole_publish_is_one_call(module: Any) -> None:
    scan, sink = scanner(module)
    scan.feed(o.publish(b"hi", channel=3, flags=3) + o.publish(b"", properties=o.PERSISTENT))
    assert sink.calls == [
        ("publish", 3, 3, "x", "a.b", PLAIN, b"hi"),
        ("publish", 1, 0, "x", "a.b", (o.PERSISTENT, 2, -1, False, False), b""),
    ]


@BOTH
def test_before_the_connection_is_open_everything_is_single_frames(module: Any) -> None:
    scan, sink = scanner(module, fast=False)
    scan.feed(o.publish(b"hi") + o.ack(1))
    assert [call[:2] for call in sink.calls] == [
        ("frame", 1),
        ("frame", 2),
        ("frame", 3),
        ("frame", 1),
    ]


@BOTH
def test_while_a_content_is_assembled_contents_come_as_frames_and_acks_whole(module: Any) -> None:
    scan, sink = scanner(module)
    scan.pending = 1
    scan.feed(o.publish(b"hi") + o.ack(7, multiple=1))
    assert [call[0] for call in sink.calls] == ["frame", "frame", "frame", "ack"]
    assert sink.calls[-1] == ("ack", 1, 7, True)


@BOTH
def test_a_body_in_several_frames_goes_singly(module: Any) -> None:
    scan, sink = scanner(module)
    scan.feed(o.publish(b"0123456789", limit=4))
    assert [call[1] for call in sink.calls] == [1, 2, 3, 3, 3]
    assert b"".join(call[3] for call in sink.calls[2:]) == b"0123456789"


@BOTH
def test_frames_of_another_channel_between_do_not_make_a_content(module: Any) -> None:
    method, rest = o.publish(b"hi")[:21], o.publish(b"hi")[21:]
    assert method.endswith(b"\xce")
    scan, sink = scanner(module)
    scan.feed(method + o.ack(1, channel=2) + rest)
    assert [call[0] for call in sink.calls] == ["frame", "ack", "frame", "frame"]


@BOTH
def test_a_whole_delivery_is_one_call_on_a_client(module: Any) -> None:
    scan, sink = scanner(module, client=True)
    scan.feed(o.deliver(b"hi", tag=2**64 - 1, redelivered=1, consumer_tag="é".encode()))
    assert sink.calls == [("deliver", 1, "é", 2**64 - 1, True, "x", "a.b", PLAIN, b"hi")]


@BOTH
def test_each_side_takes_the_other_sides_contents_as_frames(module: Any) -> None:
    server, at_server = scanner(module)
    server.feed(o.deliver())
    client, at_client = scanner(module, client=True)
    client.feed(o.publish())
    assert [call[0] for call in at_server.calls] == ["frame"] * 3
    assert [call[0] for call in at_client.calls] == ["frame"] * 3


@BOTH
def test_deliveries_of_one_channel_can_go_to_another_sink_and_back(module: Any) -> None:
    scan, sink = scanner(module, client=True)
    other = recorder(module)
    scan.divert(2, other)
    scan.feed(o.deliver(b"1") + o.deliver(b"2", channel=2))
    assert [call[-1] for call in sink.calls] == [b"1"]
    assert [call[-1] for call in other.calls] == [b"2"]
    scan.divert(2, None)
    scan.feed(o.deliver(b"3", channel=2))
    assert [call[-1] for call in sink.calls] == [b"1", b"3"]


@BOTH
def test_every_buffer_type_can_be_fed(module: Any) -> None:
    for kind in (bytes, bytearray, memoryview):
        scan, sink = scanner(module)
        data = o.publish() + o.ack(1)
        scan.feed(kind(data[:30]))
        scan.feed(kind(data[30:]))
        assert sink.calls[-1] == ("ack", 1, 1, False), kind


@BOTH
def test_the_rest_of_a_frame_is_waited_for(module: Any) -> None:
    scan, sink = scanner(module)
    data = o.ack(5)
    for at in range(len(data)):
        assert scan.buffered == at
        assert sink.calls == []
        scan.feed(data[at : at + 1])
    assert sink.calls == [("ack", 1, 5, False)]
    assert scan.buffered == 0


@BOTH
@pytest.mark.parametrize("client", [False, True], ids=["publish", "delivery"])
def test_a_content_that_was_cut_within_its_frames_is_still_one_call(
    module: Any, client: bool
) -> None:
    content = o.deliver(b"body") if client else o.publish(b"body")
    bare = len(content) - len(o.bodies(1, b"body")) - len(o.header(1, 4))
    borders = {bare, bare + len(o.header(1, 4))}
    for at in range(1, len(content)):
        scan, sink = scanner(module, client=client)
        scan.feed(content[:at])
        assert at in borders or sink.calls == [], at
        scan.feed(content[at:] + content)
        names = [call[0] for call in sink.calls]
        assert names[-1] == ("deliver" if client else "publish"), at
        assert at in borders or len(names) == 2, at
        assert scan.buffered == 0


@BOTH
def test_a_content_that_comes_octet_by_octet_comes_as_frames_as_soon_as_they_are_whole(
    module: Any,
) -> None:
    scan, sink = scanner(module)
    for octet in o.publish(b"body"):
        scan.feed(bytes([octet]))
    assert [call[:2] for call in sink.calls] == [("frame", 1), ("frame", 2), ("frame", 3)]


@BOTH
def test_a_content_with_a_body_in_several_frames_is_told_when_that_shows(module: Any) -> None:
    content = o.publish(b"0123456789", limit=4)
    scan, sink = scanner(module)
    scan.feed(content[:-9])
    assert [call[1] for call in sink.calls] == [1, 2, 3, 3]
    scan.feed(content[-9:] + o.ack(1))
    assert [call[0] for call in sink.calls] == [*["frame"] * 5, "ack"]


@BOTH
def test_a_frame_of_exactly_the_limit_and_its_tolerance_is_taken(module: Any) -> None:
    limit = HANDSHAKE_FRAME_BYTES - 8 + FRAME_FUDGE_BYTES
    scan, sink = scanner(module, fast=False)
    scan.feed(o.frame(3, 1, b"x" * limit))
    assert sink.calls == [("frame", 3, 1, b"x" * limit)]
    found = outcome(scan.feed, o.frame(3, 1, b"x" * (limit + 1))[:7])
    text = f"type 3, all octets = <<>>: {{frame_too_large,{limit + 1},{HANDSHAKE_FRAME_BYTES - 8}}}"
    assert found == ("raises", 501, text, 0, 0)


@BOTH
def test_a_too_large_frame_is_refused_before_it_is_kept(module: Any) -> None:
    for first in (1, 6, 7):
        scan, _ = scanner(module)
        start = struct.pack(">BHI", 1, 0, 2**32 - 1)
        scan.feed(start[:first]) if first < 7 else None
        with pytest.raises(ProtocolError, match="frame_too_large,4294967295"):
            scan.feed(start[first:] if first < 7 else start)


@BOTH
def test_a_wrong_frame_end_is_named(module: Any) -> None:
    scan, sink = scanner(module)
    found = outcome(scan.feed, o.frame(1, 1, b"abcd", end=0x0D))
    assert found[:2] == ("raises", 501)
    assert "{invalid_frame_end_marker,13}" in found[2]
    assert sink.calls == []


@BOTH
def test_frames_behind_a_stop_are_ignored(module: Any) -> None:
    for first in (o.publish(), o.ack(1), o.frame(8, 0, b"")):
        scan, sink = scanner(module)

        def stop(_: Any, scan: Any = scan) -> None:
            scan.stopped = True

        sink.on_call = stop
        scan.feed(first + o.ack(2) + b"\x01")
        scan.feed(o.ack(3))
        assert len(sink.calls) == 1
        assert scan.buffered == 0


@BOTH
@pytest.mark.parametrize("first", [o.publish(), o.ack(1), o.frame(8, 0, b"")])
def test_frames_behind_a_hold_are_kept_in_order(module: Any, first: bytes) -> None:
    scan, sink = scanner(module)

    def hold(_: Any) -> None:
        scan.hold = True

    sink.on_call = hold
    scan.feed(first + o.ack(2))
    scan.feed(o.ack(3)[:5])
    scan.feed(o.ack(3)[5:])
    assert len(sink.calls) == 1
    assert scan.buffered == 3 * len(o.ack(2)) - len(o.ack(2))
    sink.on_call = None
    scan.hold = False
    scan.feed(b"")
    assert sink.calls[1:] == [("ack", 1, 2, False), ("ack", 1, 3, False)]
    assert scan.buffered == 0


@BOTH
def test_a_hold_during_a_frame_that_was_cut_keeps_the_rest(module: Any) -> None:
    scan, sink = scanner(module)
    beat = o.frame(8, 0, b"")
    scan.feed(beat[:4])

    def hold(_: Any) -> None:
        scan.hold = True

    sink.on_call = hold
    scan.feed(beat[4:] + o.ack(9))
    assert sink.calls == [("frame", 8, 0, b"")]
    scan.hold = False
    scan.feed(o.ack(10))
    assert sink.calls[1] == ("ack", 1, 9, False)


@BOTH
@pytest.mark.parametrize(
    "arguments",
    [b"", b"\0\0", b"\0\0\x05abc", b"\0\0\x01x\x01k", b"\0\0\x01x\x01k\x00\x00", b"\0\0\0\xffk\0"],
)
def test_a_publish_that_cannot_be_read_goes_singly_so_that_the_sink_can_answer(
    module: Any, arguments: bytes
) -> None:
    data = o.frame(1, 1, b"\x00\x3c\x00\x28" + arguments) + o.header(1, 0)
    scan, sink = scanner(module)
    scan.feed(o.publish() + data + o.publish(b"next"))
    assert [call[0] for call in sink.calls] == ["publish", "frame", "frame", "publish"]


@BOTH
@pytest.mark.parametrize(
    "arguments",
    [b"", b"\x05", b"\x00" * 9, b"\0" * 11, b"\x01t" + b"\0" * 9 + b"\x09x\0", b"\0" * 13],
)
def test_delivery_arguments_that_do_not_fit_are_a_syntax_error(
    module: Any, arguments: bytes
) -> None:
    data = o.frame(1, 1, b"\x00\x3c\x00\x3c" + arguments) + o.header(1, 0)
    scan, _ = scanner(module, client=True)
    text = "basic.deliver: arguments do not fit the frame"
    assert outcome(scan.feed, data) == ("raises", 502, text, 60, 60)


@BOTH
def test_publishes_with_names_that_are_no_utf8_go_singly_every_time(module: Any) -> None:
    scan, sink = scanner(module)
    scan.feed(o.publish() + o.publish(key=b"\xff") + o.publish(key=b"\xff") + o.publish(b"next"))
    assert [call[0] for call in sink.calls] == ["publish", *["frame"] * 6, "publish"]


@BOTH
def test_deliveries_with_names_that_are_no_utf8_are_refused_every_time(module: Any) -> None:
    scan, _ = scanner(module, client=True)
    scan.feed(o.deliver())
    for _ in range(2):
        for changed in ({"key": b"\xff"}, {"exchange": b"\xff"}, {"consumer_tag": b"\xff"}):
            found = outcome(scan.feed, o.deliver(**changed))
            assert found == ("raises", 501, "Malformed UTF-8 in shortstr", 0, 0)


@BOTH
def test_the_remembered_last_publish_is_not_mixed_up(module: Any) -> None:
    scan, sink = scanner(module)
    routes = [(b"x", b"k"), (b"xk", b""), (b"", b"xk"), (b"x", b"kk"), (b"x", b"k")]
    for exchange, key in routes:
        scan.feed(o.publish(exchange=exchange, key=key))
    assert [(call[3].encode(), call[4].encode()) for call in sink.calls] == routes


@settings(max_examples=200, deadline=None)
@given(st.data(), st.integers(1, 40), st.lists(st.integers(0, 9), max_size=8))
def test_the_frames_of_a_gathered_content_come_as_one_however_they_are_cut(
    data: st.DataObject, size: int, sizes: list[int]
) -> None:
    sent = b"".join(o.frame(3, 1, bytes([number]) * size) for number, size in enumerate(sizes))
    sent += o.frame(8, 0, b"") + o.frame(3, 2, b"other") + o.frame(3, 1, b"x" * 50)
    parts = data.draw(o.cut(st.just(sent)))
    found = []
    for module in (USED, TWIN):
        scan, sink = scanner(module, client=True)
        scan.gather(1, size)
        for part in parts:
            scan.feed(part)
        found.append((sink.calls, scan.buffered))
    assert found[0] == found[1]
    assert found[0][1] == 0
    own = [call[3] for call in found[0][0] if call[:3] == ("frame", 3, 1)]
    assert b"".join(own) == b"".join(
        bytes([number]) * size for number, size in enumerate(sizes)
    ) + (b"x" * 50)
    if sum(sizes) >= size and size in accumulate(sizes):
        assert len(own[0]) == size


@BOTH
def test_a_gathered_frame_without_its_end_is_refused(module: Any) -> None:
    scan, sink = scanner(module, client=True)
    scan.gather(1, 5)
    found = outcome(scan.feed, o.frame(3, 1, b"abcde")[:-1] + b"!")
    text = "type 3, all octets = <<>>: {invalid_frame_end_marker,33}"
    assert found == ("raises", 501, text, 0, 0)
    assert sink.calls == []


@BOTH
def test_a_sink_that_holds_gets_the_rest_of_a_gathered_content_later(module: Any) -> None:
    scan, sink = scanner(module, client=True)
    scan.gather(1, 6)
    sink.on_call = lambda _: setattr(scan, "hold", True)
    scan.feed(o.frame(8, 0, b"") + o.frame(3, 1, b"abc"))
    scan.feed(o.frame(3, 1, b"def"))
    assert sink.calls == [("frame", 8, 0, b"")]
    scan.hold = False
    scan.feed(b"")
    assert sink.calls[1:] == [("frame", 3, 1, b"abcdef")]


def test_a_sink_has_to_answer_every_call() -> None:
    sink = USED.FrameSink()
    properties = parse_properties(o.PLAIN)
    with pytest.raises(NotImplementedError):
        sink.frame(1, 0, b"")
    with pytest.raises(NotImplementedError):
        sink.publish(1, 0, "", "", properties, b"")
    with pytest.raises(NotImplementedError):
        sink.ack(1, 1, False)
    with pytest.raises(NotImplementedError):
        sink.deliver(1, "", 1, False, "", "", properties, b"")


@BOTH
def test_a_heartbeat_is_one_only_between_two_frames_and_alone(module: Any) -> None:
    beat = o.frame(8, 0, b"")
    scan, _ = scanner(module)
    assert [scan.is_heartbeat(each) for each in (beat, memoryview(beat))] == [True, True]
    others = (b"", beat[:7], beat + beat, b"\x08\0\x01" + beat[3:], o.frame(1, 0, b""))
    assert not any(scan.is_heartbeat(each) for each in others)
    # The first octet of a frame has come: these are in the frame.
    scan.feed(o.frame(3, 1, beat + beat)[:1])
    assert not scan.is_heartbeat(beat)
    held, _ = scanner(module)
    held.hold = True
    assert not held.is_heartbeat(beat)
    # The same within a body that is gathered, of which only the head has come.
    gathering, _ = scanner(module)
    gathering.pending = 1
    gathering.gather(1, len(beat))
    gathering.feed(o.frame(3, 1, beat)[:7])
    assert not gathering.is_heartbeat(beat)
