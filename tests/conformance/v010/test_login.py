"""Logging in to AMQP 0-10 with every SASL mechanism that is offered."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from harebell.wire.v010 import controls as k
from tests.conformance.sites import MemorySite
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.raw import Peer010


def proof(digest: str, password: str, bare: str, challenge: str) -> tuple[bytes, bytes]:
    """The client's last message, and what the server has to answer (RFC 5802 3)."""
    nonce, salt, rounds = (part[2:] for part in challenge.split(","))
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(salt), int(rounds))
    key = hmac.digest(salted, b"Client Key", digest)
    said = f"{bare},{challenge},c=biws,r={nonce}".encode()
    signature = hmac.digest(hashlib.new(digest, key).digest(), said, digest)
    own = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True)))
    server = hmac.digest(hmac.digest(salted, b"Server Key", digest), said, digest)
    return f"c=biws,r={nonce},p=".encode() + own, b"v=" + base64.b64encode(server)


MECHANISMS = pytest.mark.parametrize(
    ("mechanism", "digest"), [("SCRAM-SHA-1", "sha1"), ("SCRAM-SHA-256", "sha256")]
)


@MECHANISMS
def test_scram_proves_the_password_to_both(
    connect010: Connect010, mechanism: str, digest: str
) -> None:
    peer = connect010()
    assert mechanism in peer.greet().mechanisms
    bare = "n=guest,r=abcdef"
    peer.send(k.ConnectionStartOk({}, mechanism, f"n,,{bare}".encode(), "en_US"))
    challenge = peer.expect(k.ConnectionSecure).challenge.decode()
    answer, outcome = proof(digest, "guest", bare, challenge)
    peer.send(k.ConnectionSecureOk(answer))
    assert peer.expect(k.ConnectionSecure).challenge == outcome
    peer.send(k.ConnectionSecureOk(b""))
    peer.expect(k.ConnectionTune)
    peer.send(k.ConnectionTuneOk(), k.ConnectionOpen("/"))
    peer.expect(k.ConnectionOpenOk)
    peer.close()


@MECHANISMS
@pytest.mark.parametrize("user", ["guest", "nobody"])
def test_scram_refuses_a_wrong_password_as_it_does_a_wrong_user(
    connect010: Connect010, mechanism: str, digest: str, user: str
) -> None:
    peer = connect010()
    peer.greet()
    bare = f"n={user},r=abcdef"
    peer.send(k.ConnectionStartOk({}, mechanism, f"n,,{bare}".encode(), "en_US"))
    challenge = peer.expect(k.ConnectionSecure).challenge.decode()
    answer, _ = proof(digest, "wrong", bare, challenge)
    peer.send(k.ConnectionSecureOk(answer))
    peer.expect_close(320, f"Login was refused using authentication mechanism {mechanism}")


def test_anonymous_logins_are_refused_unless_the_settings_name_a_user(
    memory010: Connect010,
) -> None:
    peer = memory010()
    assert "ANONYMOUS" not in peer.greet().mechanisms
    peer.send(k.ConnectionStartOk({}, "ANONYMOUS", b"", "en_US"))
    peer.expect_close(320, "unknown authentication mechanism 'ANONYMOUS'")


def test_an_anonymous_client_is_the_user_of_the_settings() -> None:
    site = MemorySite(anonymous_user="guest")
    peer = Peer010(site, site.connect())
    assert "ANONYMOUS" in peer.greet().mechanisms
    peer.send(k.ConnectionStartOk({}, "ANONYMOUS", b"", "en_US"))
    peer.expect(k.ConnectionTune)
    peer.send(k.ConnectionTuneOk(), k.ConnectionOpen("/"))
    peer.expect(k.ConnectionOpenOk)
    assert [link.user.name for link in site.registry.connections] == ["guest"]
    peer.close()
    peer.done()


def test_an_answer_without_a_question_ends_the_connection(connect010: Connect010) -> None:
    peer = connect010()
    peer.greet()
    peer.send(k.ConnectionSecureOk(b"x"))
    peer.expect(k.ConnectionClose, reply_code=501)
    peer.expect_end()


def cram_site(*, named: bool = True) -> MemorySite:
    """A broker whose user set the password when CRAM-MD5 was on."""
    site = MemorySite(mechanisms=("CRAM-MD5", "PLAIN") if named else ())
    site.users.cram = True
    guest = site.users.get("guest")
    assert guest is not None
    site.users.give(guest, site.users.derived("guest"))
    return site


def test_cram_md5_is_offered_where_the_settings_name_it() -> None:
    for named, offered in ((True, ["CRAM-MD5", "PLAIN"]), (False, None)):
        site = cram_site(named=named)
        peer = Peer010(site, site.connect())
        mechanisms = peer.greet().mechanisms
        assert mechanisms == offered if named else "CRAM-MD5" not in mechanisms
        peer.done()


@pytest.mark.parametrize(
    ("user", "password", "lets_in"),
    [("guest", "guest", True), ("guest", "wrong", False), ("nobody", "guest", False)],
)
def test_cram_md5_lets_in_who_answers_the_challenge(
    user: str, password: str, lets_in: bool
) -> None:
    site = cram_site()
    peer = Peer010(site, site.connect())
    peer.greet()
    peer.send(k.ConnectionStartOk({}, "CRAM-MD5", b"", "en_US"))
    challenge = peer.expect(k.ConnectionSecure).challenge
    digest = hmac.new(password.encode(), challenge, "md5").hexdigest()
    peer.send(k.ConnectionSecureOk(f"{user} {digest}".encode()))
    if lets_in:
        peer.expect(k.ConnectionTune)
    else:
        peer.expect_close(320, "Login was refused using authentication mechanism CRAM-MD5")
    peer.done()
