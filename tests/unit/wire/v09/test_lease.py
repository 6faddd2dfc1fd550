"""The claims in lease.open-ok."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.errors import ProtocolError
from harebell.wire.v09.lease import ClaimInfo, decode_claims, encode_claims

NUMBERS = st.integers(0, 2**64 - 1)
CLAIMS = st.lists(st.builds(ClaimInfo, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS), max_size=5)


@given(CLAIMS)
def test_claims_survive_the_way(claims: list[ClaimInfo]):
    octets = encode_claims(claims)
    assert len(octets) == 40 * len(claims)
    assert decode_claims(octets) == claims


@pytest.mark.parametrize("octets", [1, 39, 41])
def test_half_a_claim_is_an_error_that_names_the_field(octets: int):
    with pytest.raises(ProtocolError, match=rf"field 'claims' has {octets} octets, not 40") as told:
        decode_claims(bytes(octets))
    assert told.value.code == 502
