"""The profiles of the versions: each serves every method that it has, and no other."""

from __future__ import annotations

import pytest

from harebell.front.amqp_0_8.profiles import PROFILE_0_8, PROFILE_0_9
from harebell.front.amqp_0_9_1.channel_states import CHANNEL, ChannelEvent, ChannelState
from harebell.front.amqp_0_9_1.connection_states import CONNECTION, METHOD_EVENTS
from harebell.front.amqp_0_9_1.profile import Profile
from harebell.front.amqp_0_9_1.profile_0_9_1 import PROFILE_0_9_1
from harebell.front.common.state_table import IGNORED, Fault
from harebell.front.versions import OPENERS
from harebell.wire.v09.extensions import VERSIONS

PROFILES = [PROFILE_0_8, PROFILE_0_9, PROFILE_0_9_1]
CHANNEL_0 = "connection."
ANSWERS = {"channel.flow-ok", "channel.close-ok"}
"""Answers to what the broker does not ask in 0-9-1; RabbitMQ takes none of them."""


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.version)
def test_every_method_that_a_client_sends_on_a_channel_is_served(profile: Profile) -> None:
    wanted = {
        spec.type
        for spec in profile.spec.methods
        if spec.from_client and not spec.name.startswith(CHANNEL_0)
    }
    unserved = {kind.NAME for kind in wanted - set(profile.handlers)} - {"channel.open"}
    # The broker tests nobody, so nothing is an answer to it.
    unserved = {name for name in unserved if not name.startswith("test.")}
    assert unserved == (ANSWERS if profile is PROFILE_0_9_1 else set())


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.version)
def test_no_handler_is_for_a_method_that_the_version_has_not(profile: Profile) -> None:
    known = {spec.type for spec in profile.spec.methods}
    assert set(profile.handlers) <= known
    assert set(profile.connection_handlers) <= known


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.version)
def test_an_open_channel_takes_the_methods_with_a_handler_and_no_other(profile: Profile) -> None:
    row = CHANNEL[ChannelState.OPEN]
    for kind, event in profile.channel_events.items():
        assert isinstance(row[event], Fault) == (kind not in profile.handlers), kind.NAME


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.version)
def test_methods_that_a_version_has_not_are_legal_in_no_state(profile: Profile) -> None:
    names = {spec.name for spec in profile.spec.methods}
    assert profile.states.keys() == CONNECTION.keys()
    for state, row in profile.states.items():
        for name, event in METHOD_EVENTS.items():
            if name in names:
                assert row[event] == CONNECTION[state][event]
            else:
                assert row[event] is IGNORED or isinstance(row[event], Fault)


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.version)
def test_a_version_is_served_under_its_name(profile: Profile) -> None:
    assert profile.version in OPENERS
    assert profile.spec.version == profile.version


def test_harebells_own_classes_are_told_to_clients_of_0_9_1_alone() -> None:
    assert PROFILE_0_9_1.extensions == VERSIONS
    assert PROFILE_0_8.extensions is None
    assert PROFILE_0_9.extensions is None


def test_the_ends_of_a_channel_are_known_by_their_first_octets() -> None:
    for profile in PROFILES:
        assert profile.channel_ends == {
            b"\0\x14\0\x28": ChannelEvent.CLOSE,
            b"\0\x14\0\x29": ChannelEvent.CLOSE_OK,
        }
