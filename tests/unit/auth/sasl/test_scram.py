"""SCRAM: the published exchanges, a client of our own, and everybody who must not get in."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from harebell.auth.sasl.exchange import Context, Exchange, SaslError
from harebell.auth.sasl.exchanges import begin_exchange, offers
from harebell.auth.users import User, Users
from harebell.auth.verifiers import DIGESTS, SHA1, SHA256

MECHANISMS = pytest.mark.parametrize("mechanism", [SHA1, SHA256])


def context(address: str = "10.0.0.1") -> Context:
    users = Users(lambda size: b"r" * size)
    users.add("ann,=b", "s3cret")
    users.add("local", "s3cret", loopback_only=True)
    users.put(User("hashed", "AAAA"))
    return Context(users, address, lambda size: b"n" * size)


def begun(mechanism: str, found: Context | None = None) -> Exchange:
    exchange = begin_exchange(mechanism, found or context())
    assert exchange is not None
    return exchange


class Client:
    """The other side, from RFC 5802 alone."""

    def __init__(self, mechanism: str, user: str, password: str) -> None:
        self.digest = DIGESTS[mechanism]
        self.password = password
        self.bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r=abc"
        self.said = ""
        self.salted = b""

    def first(self) -> bytes:
        return f"n,,{self.bare}".encode()

    def final(self, challenge: bytes) -> bytes:
        nonce, salt, rounds = (part[2:] for part in challenge.decode().split(","))
        assert nonce.startswith("abc")
        octets = base64.b64decode(salt)
        self.salted = hashlib.pbkdf2_hmac(self.digest, self.password.encode(), octets, int(rounds))
        key = hmac.digest(self.salted, b"Client Key", self.digest)
        stored = hashlib.new(self.digest, key).digest()
        without = f"c=biws,r={nonce}"
        self.said = f"{self.bare},{challenge.decode()},{without}"
        signature = hmac.digest(stored, self.said.encode(), self.digest)
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return f"{without},p={base64.b64encode(proof).decode()}".encode()

    def knows(self, outcome: bytes) -> bool:
        server = hmac.digest(self.salted, b"Server Key", self.digest)
        signature = hmac.digest(server, self.said.encode(), self.digest)
        return outcome == b"v=" + base64.b64encode(signature)


@MECHANISMS
def test_the_right_password_logs_in_and_the_server_proves_that_it_knows_it(mechanism: str) -> None:
    exchange, client = begun(mechanism), Client(mechanism, "ann,=b", "s3cret")
    challenge = exchange.step(client.first())
    assert challenge is not None
    outcome = exchange.step(client.final(challenge))
    assert outcome is not None
    assert client.knows(outcome)
    assert exchange.user is None
    assert exchange.step(b"") is None
    assert exchange.user is not None
    assert exchange.user.name == exchange.name == "ann,=b"


@MECHANISMS
@pytest.mark.parametrize(
    ("user", "password"), [("ann,=b", "wrong"), ("nobody", "s3cret"), ("hashed", "s3cret")]
)
def test_a_wrong_password_fails_at_the_proof(mechanism: str, user: str, password: str) -> None:
    exchange, client = begun(mechanism), Client(mechanism, user, password)
    challenge = exchange.step(client.first())
    assert challenge is not None
    assert exchange.step(client.final(challenge)) is None
    assert exchange.user is None


@MECHANISMS
def test_a_user_that_does_not_exist_has_a_salt_of_his_own_that_stays(mechanism: str) -> None:
    found = context()
    salts = [
        begun(mechanism, found).step(Client(mechanism, user, "").first())
        for user in ("nobody", "nobody", "nobody else")
    ]
    assert salts[0] == salts[1] != salts[2]


@MECHANISMS
def test_a_user_of_this_machine_gets_in_from_here_only(mechanism: str) -> None:
    for address, let_in in (("10.0.0.1", False), ("127.0.0.1", True)):
        exchange, client = begun(mechanism, context(address)), Client(mechanism, "local", "s3cret")
        challenge = exchange.step(client.first())
        assert challenge is not None
        exchange.step(client.final(challenge))
        exchange.step(b"")
        assert (exchange.user is not None) == let_in


@pytest.mark.parametrize(
    "message",
    [b"", b"\xff", b"p=tls-unique,,n=a,r=b", b"n,,r=b,n=a", b"n,,n=a", b"n,,n=a,r=", b"n,,x"],
)
def test_a_first_message_that_does_not_begin_an_exchange_is_refused(message: bytes) -> None:
    with pytest.raises(SaslError):
        begun(SHA256).step(message)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"c=biws,r=abcother,p=AAAA",
        b"c=eSws,r=NONCE,p=AAAA",
        b"c=biws,r=NONCE,p=?",
        b"x,p=AAAA",
    ],
)
def test_a_proof_of_another_exchange_is_refused(message: bytes) -> None:
    exchange = begun(SHA256)
    challenge = exchange.step(b"n,,n=ann,r=abc")
    assert challenge is not None
    nonce = challenge.split(b",")[0][2:]
    with pytest.raises(SaslError):
        exchange.step(message.replace(b"NONCE", nonce))


def test_an_exchange_ends_with_an_empty_response() -> None:
    exchange, client = begun(SHA256), Client(SHA256, "ann,=b", "s3cret")
    challenge = exchange.step(client.first())
    assert challenge is not None
    exchange.step(client.final(challenge))
    with pytest.raises(SaslError):
        exchange.step(b"more")
    assert exchange.user is None


def test_scram_is_offered_where_a_user_can_log_in_with_it() -> None:
    users = Users(bytes)
    users.put(User("hashed", "AAAA"))
    nobody = Context(users, "", bytes)
    assert offers(nobody) == ["PLAIN"]
    assert begin_exchange(SHA256, nobody) is None
    assert offers(context()) == [SHA256, SHA1, "PLAIN"]
