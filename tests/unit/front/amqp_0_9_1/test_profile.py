"""The profiles of the versions: each serves every method that it has, and no other."""

from __future__ import annotations

import pytest

from harebell.front.amqp_0_8.profile_0_8 import PROFILE_0_8
from harebell.front.amqp_0_8.profile_0_9 import PROFILE_0_9
from harebell.front.amqp_0_9_1.profile import Profile
from harebell.front.amqp_0_9_1.profile_0_9_1 import PROFILE_0_9_1
from harebell.front.versions import OPENERS
from harebell.wire.v09 import methods as m
from harebell.wire.v09.extensions import VERSIONS
from harebell.wire.v09.states import CONNECTION_SERVER

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
def test_the_states_name_methods_of_the_version(profile: Profile) -> None:
    names = {spec.name for spec in profile.spec.methods}
    assert profile.states.keys() == CONNECTION_SERVER.keys()
    for follows in profile.states.values():
        assert set(follows) <= names


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
            b"\0\x14\0\x28": m.ChannelClose,
            b"\0\x14\0\x29": m.ChannelCloseOk,
        }
