"""The gauge tells exactly when memory crosses its marks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harebell.base.gauge import Gauge
from harebell.base.limits import HELD_AGAIN_BYTES, MEMORY_LOW_SHARE, SHARED_BODY_BYTES
from harebell.base.message import Message, Properties, copy_message


def test_a_gauge_without_a_limit_is_never_over() -> None:
    gauge = Gauge()
    gauge.add(10**15)
    assert not gauge.crossed()
    assert not gauge.over


def test_the_watermark_itself_is_not_over_it() -> None:
    gauge = Gauge(1000)
    gauge.add(1000)
    assert not gauge.crossed()
    gauge.add(1)
    assert gauge.crossed()


def test_a_crossing_is_told_once() -> None:
    gauge = Gauge(1000)
    gauge.add(1001)
    assert gauge.crossed()
    assert gauge.over
    assert not gauge.crossed()


def test_a_gauge_stays_over_until_the_low_mark() -> None:
    gauge = Gauge(1000)
    gauge.add(1001)
    gauge.crossed()
    gauge.take(1001 - gauge.low)
    assert not gauge.crossed()
    assert gauge.over, "at the low mark publishers are still held"
    gauge.take(1)
    assert gauge.crossed()
    assert not gauge.over


def test_a_watermark_of_zero_blocks_at_once_and_until_it_is_raised() -> None:
    gauge = Gauge(1000)
    gauge.set_resident(300)
    assert not gauge.crossed()
    gauge.set_high(0)
    assert gauge.crossed()
    assert not gauge.crossed()
    gauge.set_high(1000)
    assert gauge.crossed()
    assert not gauge.over


def test_the_rest_of_the_process_leaves_less_to_messages() -> None:
    gauge = Gauge(1000)
    gauge.add(100)
    gauge.set_resident(700)
    assert (gauge.used, gauge.other, gauge.room, gauge.resident()) == (100, 600, 400, 700)
    gauge.add(300)
    assert not gauge.crossed()
    gauge.add(1)
    assert gauge.crossed()
    assert gauge.resident() == 1001


def test_a_process_that_is_smaller_than_its_messages_has_no_rest() -> None:
    gauge = Gauge(1000)
    gauge.add(500)
    gauge.set_resident(400)
    assert (gauge.other, gauge.room, gauge.resident()) == (0, 1000, 500)


def test_memory_is_measured_once_more_before_anybody_is_blocked() -> None:
    gauge = Gauge(1000)
    gauge.set_resident(990)
    gauge.measure = lambda: gauge.set_resident(gauge.used + 300)
    gauge.add(500)
    assert not gauge.crossed(), "the allocator has given back what it kept"
    gauge.add(300)
    assert gauge.crossed()


def test_the_low_mark_is_the_configured_share() -> None:
    assert Gauge(1000).low == int(1000 * MEMORY_LOW_SHARE)


@given(st.lists(st.integers(0, 500), max_size=60))
def test_the_use_of_a_gauge_is_what_went_in_less_what_went_out(amounts: list[int]) -> None:
    gauge = Gauge(1000)
    for amount in amounts:
        gauge.add(amount)
    for amount in amounts[::2]:
        gauge.take(amount)
    assert gauge.used == sum(amounts[1::2])


def made(size: int) -> Message:
    return Message("", "key", Properties(b"\0\0"), bytes(size))


@given(st.lists(st.integers(0, 7), max_size=60))
def test_a_gauge_released_as_often_as_it_was_held_is_empty(which: list[int]) -> None:
    gauge = Gauge()
    small, large = made(10), made(SHARED_BODY_BYTES)
    known = [small, large]
    known += [copy_message(each, "", "other") for each in (small, large, large)]
    held: list[Message] = []
    for number in which:
        if number < len(known):
            message = known[number]
            held.append(message)
            assert gauge.hold(message) == message.footprint()
        elif held:
            message = held.pop(0)
            assert gauge.release(message) == message.footprint()
        bodies = {id(each.body): len(each.body) for each in held if len(each.body) > 10}
        smallest = sum(bodies.values())
        assert smallest <= gauge.used <= smallest + len(held) * 300
        assert gauge.sharing(large) >= held.count(large)
    for message in held:
        gauge.release(message)
    assert gauge.used == 0
    assert all(each.holders == 0 for each in known)


def test_each_further_holder_of_a_message_counts_next_to_nothing() -> None:
    gauge = Gauge()
    message = made(100)
    gauge.hold(message)
    gauge.hold(message)
    assert gauge.used == message.footprint() + HELD_AGAIN_BYTES
    assert gauge.sharing(message) == 2
