"""The life of a leased reader: every pair of a state and an event, and the drawing in the docs."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from harebell.spark.reading.leased.states import TRANSITIONS, ReaderEvent, ReaderState, following

_PAGE = Path(__file__).parents[5] / "docs" / "internals" / "leased-reader.md"

_WITHOUT_A_GROUP = {
    ReaderEvent.RENEWED,
    ReaderEvent.CLAIM_ANSWERED,
    ReaderEvent.ANSWER_USED,
    ReaderEvent.LOST,
}
_CANNOT_HAPPEN = {
    ReaderState.CLOSED: _WITHOUT_A_GROUP,
    ReaderState.HELD: {ReaderEvent.ANSWER_USED},
    ReaderState.ANSWERED: {ReaderEvent.CLAIM_ANSWERED},
    ReaderState.FINISHED: {ReaderEvent.CLAIM_ANSWERED, ReaderEvent.ANSWER_USED},
}


@pytest.mark.parametrize(("state", "event"), list(product(ReaderState, ReaderEvent)))
def test_an_event_has_a_following_state_unless_it_cannot_happen(
    state: ReaderState, event: ReaderEvent
) -> None:
    if event in _CANNOT_HAPPEN[state]:
        with pytest.raises(RuntimeError, match=rf"{state.value} got the event '{event.value}'"):
            following(state, event)
    else:
        assert following(state, event) in ReaderState


@pytest.mark.parametrize("state", ReaderState)
def test_an_opened_group_is_held_except_by_a_finished_reader(state: ReaderState) -> None:
    expected = ReaderState.FINISHED if state is ReaderState.FINISHED else ReaderState.HELD
    assert following(state, ReaderEvent.OPENED) is expected


@pytest.mark.parametrize("state", ReaderState)
def test_a_finished_reader_claims_again_only_for_another_available_now_query(
    state: ReaderState,
) -> None:
    events = [event for event, after in TRANSITIONS[ReaderState.FINISHED].items() if after is state]
    assert state is ReaderState.FINISHED or events == (
        [ReaderEvent.PREPARED] if state is ReaderState.CLOSED else []
    )


def test_the_page_has_the_drawing_of_the_table() -> None:
    assert f"```\n{drawing()}```\n" in _PAGE.read_text()


def drawing() -> str:
    """The table as text: the events of each state, and the state that follows."""
    lines = [
        f"{state.value:<10} {event.value:<16} -> {after.value}"
        for state, follows in TRANSITIONS.items()
        for event, after in follows.items()
    ]
    return "\n".join(lines) + "\n"
