"""Windows and rates: what fits, what is released, and when the next packet may go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harebell.front.file_stream.windows import Rate, Window
from harebell.front.limits import RATE_SLACK_MS


def test_a_window_without_limits_fits_everything():
    window = Window()
    for _ in range(1_000):
        assert window.fits(10**9)
        window.add(10**9)


def test_messages_and_octets_are_both_limited():
    window = Window()
    window.limit(2, 100)
    window.add(60)
    assert window.fits(40)
    assert not window.fits(41)
    window.add(40)
    assert not window.fits(0), "two are out"
    window.remove(60)
    assert window.fits(60)


def test_a_content_larger_than_the_window_goes_alone():
    window = Window()
    window.limit(0, 100)
    assert window.fits(500)
    window.add(500)
    assert not window.fits(1)


@given(st.lists(st.integers(0, 200)), st.integers(0, 5), st.integers(0, 300))
def test_a_window_is_never_exceeded_but_by_one_alone(
    sizes: list[int], max_messages: int, octets: int
):
    window = Window()
    window.limit(max_messages, octets)
    out: list[int] = []
    for size in sizes:
        while not window.fits(size):
            window.remove(out.pop(0))
        window.add(size)
        out.append(size)
        assert not max_messages or window.count <= max_messages
        assert not octets or window.byte_count <= octets or window.count == 1
    assert (window.count, window.byte_count) == (len(out), sum(out))


def test_a_rate_spaces_messages_by_their_octets():
    rate = Rate()
    rate.limit(1_000)
    now = 5_000
    times = []
    for _ in range(5):
        while not rate.allows(now):
            now += 1
        rate.sent(500, now)
        times.append(now - 5_000)
    assert times == [0, *(500 * number - RATE_SLACK_MS for number in range(1, 5))]


def test_small_messages_at_a_high_rate_come_at_that_rate():
    rate = Rate()
    rate.limit(1_000_000)
    sent = 0
    for now in range(1_000, 2_000):
        while rate.allows(now):
            rate.sent(100, now)
            sent += 100
    assert 1_000_000 <= sent <= 1_000_000 + 1_000 * (RATE_SLACK_MS + 1)


def test_a_timer_that_comes_late_is_made_up_for():
    rate = Rate()
    rate.limit(1_000_000)
    sent = 0
    for now in range(1_000, 2_000, 15):
        while rate.allows(now):
            rate.sent(100, now)
            sent += 100
    assert sent >= 970_000


def test_time_that_nobody_used_is_not_saved_up():
    rate = Rate()
    rate.limit(1_000)
    rate.sent(1_000, 0)
    rate.sent(1_000, 10_000)
    assert not rate.allows(11_000 - RATE_SLACK_MS - 1)
    assert rate.allows(11_000 - RATE_SLACK_MS)


def test_no_rate_is_no_limit():
    rate = Rate()
    rate.sent(10**9, 0)
    assert rate.allows(0)
