"""OAuth 2 tokens as logins: `auth_backends.1 = oauth2`."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pika
import pytest
from proton import Message, ProtonException
from proton.utils import BlockingConnection

from harebell.management.limits import HTTP_HEAD_BYTES, KEYS_SECONDS
from tests.patience import SECONDS, eventually
from tests.running import DidNotStart, RunningBroker
from tests.unit.management.backends.authorization_server import EVERYTHING, AuthorizationServer
from tests.unit.management.backends.test_web_service import broker_with, connected
from tests.unit.management.http.asking import Api

REFUSED = pika.exceptions.ProbableAuthenticationError
Site = tuple[RunningBroker, Api]
LOGIN_SECONDS = 15
"""How long a token is valid that has to end in the test: a login takes much less."""


@pytest.fixture(scope="module")
def server() -> Iterator[AuthorizationServer]:
    with closing(AuthorizationServer()) as found:
        yield found


def lines(server: AuthorizationServer, *more: str) -> list[str]:
    return [
        "auth_backends.1 = oauth2",
        "auth_oauth2.resource_server_id = rabbitmq",
        f"auth_oauth2.issuer = {server.issuer}",
        *more,
    ]


@pytest.fixture(scope="module")
def site(server: AuthorizationServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    directory = tmp_path_factory.mktemp("oauth2")
    more = [
        "auth_backends.2 = internal",
        "auth_oauth2.preferred_username_claims.1 = user_name",
        "auth_oauth2.additional_scopes_key = roles realm_access.roles",
        "auth_oauth2.scope_aliases.reader = rabbitmq.read:*/* rabbitmq.tag:monitoring",
    ]
    with broker_with(directory, *lines(server, *more)) as found:
        yield found


def entered(site: Site, token: str) -> pika.BlockingConnection:
    return connected(site[0], "ignored", token)


def bearer(token: str) -> dict[str, Any]:
    return {"user": None, "headers": {"authorization": f"Bearer {token}"}}


@pytest.mark.parametrize("key", ["rsa", "ec", "ed"])
def test_a_token_logs_in_with_every_kind_of_key(
    site: Site, server: AuthorizationServer, key: str
) -> None:
    with entered(site, server.token(key=key)) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        channel.confirm_delivery()
        channel.basic_publish("", "q", b"body", mandatory=True)
        assert channel.basic_get("q", auto_ack=True)[2] == b"body"


def test_the_keys_are_read_once(site: Site, server: AuthorizationServer) -> None:
    for _ in range(5):
        entered(site, server.token()).close()
    assert server.read.count("/realm/keys") <= 2


def test_the_user_is_the_one_that_the_token_names(site: Site, server: AuthorizationServer) -> None:
    api = site[1]
    token = server.token("rabbitmq.tag:management rabbitmq.tag:policymaker")
    who = api.get("/api/whoami", **bearer(token))
    assert (who["name"], who["tags"]) == ("ada", ["management", "policymaker"])
    named = server.token("rabbitmq.tag:management", user_name="grace")
    assert api.get("/api/whoami", **bearer(named))["name"] == "grace"
    client = server.token("rabbitmq.tag:management", sub=None, client_id="app")
    assert api.get("/api/whoami", **bearer(client))["name"] == "app"
    assert api.get("/api/whoami", user=f"x:{token}")["name"] == "ada"


def test_scopes_are_permissions_on_vhosts_names_and_routing_keys(
    site: Site, server: AuthorizationServer
) -> None:
    scope = (
        "rabbitmq.configure:%2F/ours-* rabbitmq.write:%2F/ours-*/a.* rabbitmq.read:%2F/ours-* "
        "rabbitmq.write:%2F/amq.default elsewhere.read:*/*"
    )
    with entered(site, server.token(scope)) as connection:
        channel = connection.channel()
        channel.queue_declare("ours-q")
        channel.exchange_declare("ours-x", "topic")
        channel.basic_publish("ours-x", "a.b", b"allowed")
        channel.queue_declare("ours-q", passive=True)
        channel.basic_publish("ours-x", "b.b", b"refused")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as topic:
            channel.queue_declare("ours-q", passive=True)
        assert "write access to topic 'b.b' in exchange 'ours-x'" in topic.value.reply_text
        channel = connection.channel()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as queue:
            channel.queue_declare("theirs")
        assert queue.value.reply_text == (
            "ACCESS_REFUSED - configure access to queue 'theirs' in vhost '/' refused for user "
            "'ada'"
        )
    with pytest.raises(pika.exceptions.ProbableAccessDeniedError, match="access to vhost '/'"):
        entered(site, server.token("rabbitmq.read:other/*"))


def test_variables_in_scopes_are_the_vhost_and_claims(
    site: Site, server: AuthorizationServer
) -> None:
    scope = "rabbitmq.configure:{vhost}/{team}-*"
    with entered(site, server.token(scope, team="ops*")) as connection:
        channel = connection.channel()
        channel.queue_declare("ops*-1", exclusive=True)
        with pytest.raises(pika.exceptions.ChannelClosedByBroker):
            # A wildcard in a claim is no wildcard of the scope.
            channel.queue_declare("ops-2-1", exclusive=True)


@pytest.mark.parametrize(
    "claims",
    [
        {"roles": ["reader"]},
        {"roles": "reader other"},
        {"realm_access": {"roles": ["reader"]}},
        {"realm_access": [{"roles": ["x"]}, {"roles": ["reader"]}]},
        {"roles": {"rabbitmq": ["read:*/*", "tag:monitoring"]}},
        {"authorization": {"permissions": [{"scopes": ["rabbitmq.read:*/*", "reader"]}]}},
    ],
)
def test_more_claims_may_have_scopes_or_other_names_of_them(
    site: Site, server: AuthorizationServer, claims: dict[str, Any]
) -> None:
    token = server.token(None, **claims)
    assert site[1].get("/api/whoami", **bearer(token))["tags"] == ["monitoring"]
    with entered(site, token) as connection:
        channel = connection.channel()
        with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="configure access"):
            channel.queue_declare("q")


def forged(server: AuthorizationServer) -> str:
    """A token whose shared secret is the public key: the classic confusion of algorithms."""
    head = {"alg": "HS256", "typ": "JWT", "kid": "rsa"}
    claims = {"aud": "rabbitmq", "iss": server.issuer, "sub": "ada", "exp": time.time() + 60}
    parts = [
        base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=")
        for each in (head, {**claims, "scope": EVERYTHING})
    ]
    text = b".".join(parts)
    signature = hmac.new(server.pem("rsa"), text, hashlib.sha256).digest()
    return (text + b"." + base64.urlsafe_b64encode(signature).rstrip(b"=")).decode()


def unsigned(server: AuthorizationServer) -> str:
    _, claims, _ = server.token().split(".")
    head = base64.urlsafe_b64encode(b'{"alg":"none","kid":"rsa"}').rstrip(b"=").decode()
    return f"{head}.{claims}."


def said_since(broker: RunningBroker, start: int, text: str) -> bool:
    return text in broker.log[start:]


def test_each_wrong_token_is_refused_for_its_reason_and_never_logged(
    tmp_path: Path, server: AuthorizationServer
) -> None:
    head, claims, signature = server.token().split(".")
    with closing(AuthorizationServer()) as other:
        stranger = other.token(iss=server.issuer)
    many = " ".join(f"rabbitmq.read:*/{number}" for number in range(2_100))
    wrong = [
        ("signature_invalid", f"{head}.{claims}.{signature[:-8]}AAAAAAAA"),
        ("signature_invalid", stranger),
        ("Provided JWT token has expired", server.token(seconds=-5)),
        ("Provided JWT token has no exp claim", server.token(exp=None)),
        ("invalid_aud", server.token(aud="other")),
        ("invalid_aud", server.token(aud=["a", "b"])),
        ("Provided JWT token has no aud claim", server.token(aud=None)),
        ("Invalid issuer", server.token(iss="http://elsewhere")),
        ("The specified alg value is not allowed", forged(server)),
        ("The specified alg value is not allowed", unsigned(server)),
        ("the token has 2100 scopes, at most 2048 are read", server.token(many)),
        ("provided token is invalid", "no token"),
        ("provided token is invalid", "a.b"),
        ("provided token is invalid", "\u00e9.\u00e9.\u00e9"),
        ("Invalid header", "YQ.YQ.YQ"),
    ]
    more = ["initial_frame_max = 100000"]
    with broker_with(tmp_path, *lines(server, *more)) as (broker, api):
        for said, token in wrong:
            before = len(broker.log)
            with pytest.raises(REFUSED):
                connected(broker, "ignored", token)
            text = f"PLAIN login refused: Authentication using an OAuth 2/JWT token failed: {said}"
            assert eventually(partial(said_since, broker, before, text)), broker.log[before:]
            assert token not in broker.log
            if token.isascii():
                status = 431 if len(token) > HTTP_HEAD_BYTES else 401
                assert api.ask("GET", "/api/whoami", **bearer(token)).status == status


def test_the_audience_may_be_left_unchecked(tmp_path: Path, server: AuthorizationServer) -> None:
    with broker_with(tmp_path, *lines(server, "auth_oauth2.verify_aud = false")) as site:
        entered(site, server.token(aud="other")).close()
        entered(site, server.token(aud=None)).close()


def test_the_end_of_a_token_closes_its_connection(site: Site, server: AuthorizationServer) -> None:
    connection = entered(site, server.token(seconds=LOGIN_SECONDS))
    channel = connection.channel()
    channel.queue_declare("q")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.sleep(SECONDS)
    assert (closed.value.reply_code, closed.value.reply_text) == (
        320,
        "CONNECTION_FORCED - credential expired",
    )


def test_a_new_secret_renews_the_login_and_its_permissions(
    site: Site, server: AuthorizationServer
) -> None:
    with entered(site, server.token(seconds=LOGIN_SECONDS)) as connection:
        channel = connection.channel()
        channel.queue_declare("renewed")
        channel.basic_publish("", "renewed", b"1")
        scope = "rabbitmq.read:*/* rabbitmq.write:*/other"
        connection.update_secret(server.token(scope, seconds=300), "it ends")
        connection.sleep(LOGIN_SECONDS + 1)
        assert channel.basic_get("renewed", auto_ack=True)[2] == b"1"
        channel.basic_publish("", "renewed", b"2")
        with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
            channel.basic_get("renewed")
        assert "write access to exchange 'amq.default'" in closed.value.reply_text


def test_proton_puts_a_new_token_at_the_node_for_it(
    site: Site, server: AuthorizationServer
) -> None:
    url = f"amqp://127.0.0.1:{site[0].port}"
    login = {"user": "ignored", "password": server.token(), "allowed_mechs": "PLAIN"}
    connection = BlockingConnection(url, timeout=SECONDS, **login)
    try:
        answers = connection.create_receiver("$cbs", credit=5)
        requests = connection.create_sender("$cbs")

        def put(token: str) -> tuple[int, str]:
            claims = {"operation": "put-token", "type": "jwt", "name": "rabbitmq"}
            requests.send(Message(token, id="1", properties=claims))
            answer = answers.receive(SECONDS)
            assert answer.correlation_id == "1"
            status: dict[str, Any] = answer.properties
            return status["status-code"], status["status-description"]

        assert put("no token") == (401, "New secret was refused by one of the backends")
        connection.create_sender("put-by-token").close()
        assert put(server.token("rabbitmq.read:*/*"))[0] == 202
        # The new token may not declare.
        with pytest.raises(ProtonException):
            connection.create_sender("never-put")
    finally:
        connection.close()


@pytest.mark.parametrize(
    "claims", [{"sub": "grace"}, {"seconds": -5}, {"aud": "other"}], ids=["user", "old", "aud"]
)
def test_a_wrong_secret_ends_the_connection(
    site: Site, server: AuthorizationServer, claims: dict[str, Any]
) -> None:
    connection = entered(site, server.token())
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.update_secret(server.token(**claims), "it ends")
    assert closed.value.reply_text == (
        "NOT_ALLOWED - New secret was refused by one of the backends"
    )


def test_keys_of_files_verify_without_a_server(tmp_path: Path, server: AuthorizationServer) -> None:
    for name in ("rsa", "ec", "ed"):
        (tmp_path / f"{name}.pem").write_bytes(server.pem(name))
    settings = [
        "auth_backends.1 = oauth2",
        "auth_oauth2.resource_server_id = rabbitmq",
        *(f"auth_oauth2.signing_keys.{name} = {tmp_path}/{name}.pem" for name in server.keys),
        "auth_oauth2.default_key = rsa",
        "auth_oauth2.algorithms.1 = RS256",
        "auth_oauth2.algorithms.2 = EdDSA",
    ]
    with broker_with(tmp_path, *settings) as site:
        entered(site, server.token(iss=None)).close()
        entered(site, server.token(key="ed")).close()
        with pytest.raises(REFUSED):
            entered(site, server.token(key="ec"))


def test_a_new_key_is_read_and_made_up_ones_cause_no_requests(
    tmp_path: Path, server: AuthorizationServer
) -> None:
    with closing(AuthorizationServer()) as own:
        own.published = ["rsa"]
        with broker_with(tmp_path, *lines(own)) as site:
            begun = time.monotonic()
            entered(site, own.token()).close()
            for _ in range(5):
                with pytest.raises(REFUSED):
                    entered(site, own.token(key="ec"))
            passed = time.monotonic() - begun
            read = own.read.count("/realm/keys")
            assert 1 <= read <= 1 + passed // KEYS_SECONDS
            own.published = ["ec"]

            def is_let_in() -> bool:
                try:
                    entered(site, own.token(key="ec")).close()
                except REFUSED:
                    time.sleep(0.5)  # too many refusals would keep its address out
                    return False
                return True

            assert eventually(is_let_in)
            assert own.read.count("/realm/keys") == read + 1
            with pytest.raises(REFUSED):
                # The key was withdrawn.
                entered(site, own.token(key="rsa"))


def test_an_empty_set_of_keys_takes_no_key_away(
    tmp_path: Path, server: AuthorizationServer
) -> None:
    with closing(AuthorizationServer()) as own:
        own.published = ["rsa"]
        with broker_with(tmp_path, *lines(own)) as site:
            entered(site, own.token()).close()
            own.published = []

            def is_read_again() -> bool:
                with pytest.raises(REFUSED):
                    entered(site, own.token(key="ec"))
                time.sleep(0.5)  # too many refusals would keep its address out
                return "has no key that tokens can be verified with" in site[0].log

            assert eventually(is_read_again)
            entered(site, own.token()).close()


def test_keys_that_cannot_be_read_are_an_error_in_the_log(
    tmp_path: Path, server: AuthorizationServer
) -> None:
    with closing(AuthorizationServer()) as own:
        own.status = 503
        with broker_with(tmp_path, *lines(own)) as site:
            with pytest.raises(REFUSED):
                entered(site, own.token())
            text = "the keys for OAuth 2 tokens cannot be read"
            assert eventually(lambda: text in site[0].log and "status 503" in site[0].log)


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ("resource_server_id", "auth_oauth2_resource_server_id is not set"),
        ("issuer", "no key verifies tokens"),
    ],
)
def test_a_missing_key_ends_the_start(
    tmp_path: Path, server: AuthorizationServer, left_out: str, said: str
) -> None:
    given = [line for line in lines(server) if left_out not in line]
    with pytest.raises(DidNotStart, match=said), broker_with(tmp_path, *given):
        pass


def test_the_http_api_may_take_tokens_alone(tmp_path: Path, server: AuthorizationServer) -> None:
    more = ["auth_backends.2 = internal", "management.oauth_enabled = true"]
    with broker_with(tmp_path, *lines(server, *more)) as (_, api):
        token = server.token("rabbitmq.tag:administrator")
        assert api.ask("GET", "/api/overview", **bearer(token)).status == 200
        refused = api.ask("GET", "/api/overview")
        assert (refused.status, refused.json["reason"]) == (
            401,
            "HTTP Basic is disabled: send an OAuth 2 token",
        )
