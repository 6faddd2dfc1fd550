"""The backend `http`: a web service of the owner's, with the requests of RabbitMQ's plugin.

    user_path       username, password                            allow [tags] | deny [reason]
    vhost_path      username, vhost, ip, tags                     allow | deny
    resource_path   username, vhost, resource, name, permission, tags
    topic_path      the same, routing_key, variable_map.username, variable_map.vhost

Only the status codes 200 and 201 have an answer. All else is a refusal, with a line in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from harebell.auth.authority import RESOURCE, TOPIC, VHOST, Question
from harebell.auth.users import Claim
from harebell.management.backends.asked import AskedAuthority
from harebell.management.backends.contract import Decide, Denied, Identity, Log
from harebell.management.backends.web_client import WebClient, WebError

_ANSWERS = (200, 201)
_SHOWN = 80
_DENY = "deny"
_ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class WebPaths:
    """The addresses of the service.

    Args:
        user, vhost, resource, topic: where each kind of question is sent to.
        posts: whether parameters are sent as a form, not in the address.
    """

    user: str
    vhost: str
    resource: str
    topic: str
    posts: bool = False


class WebService:
    """Asks the service.

    Args:
        paths: its addresses.
        client: sends requests.
        log: writes to the log.
        clock: returns seconds, monotonic.
    """

    name = "http"

    def __init__(
        self, paths: WebPaths, client: WebClient, log: Log, clock: Callable[[], float]
    ) -> None:
        self._paths = paths
        self._client = client
        self._log = log
        self._clock = clock

    async def authenticate(self, claim: Claim) -> Identity:
        """Ask about a user and a password."""
        fields = {"username": claim.name}
        if claim.password is not None:
            fields["password"] = claim.password
        try:
            answer = await self._asked(self._paths.user, fields)
        except WebError as error:
            raise Denied(
                f"rabbit_auth_backend_http failed authenticating {claim.name}: {error}",
                failed=True,
            ) from None
        word, _, rest = answer.partition(" ")
        if word.lower() == _ALLOW:
            return Identity(claim.name, tuple(rest.split()), claim.address)
        if word.lower() == _DENY:
            if rest:
                self._log("info", f"HTTP authentication denied for user '{claim.name}': {rest}")
            raise Denied("Denied by the backing HTTP service")
        raise Denied(
            f"rabbit_auth_backend_http failed authenticating {claim.name}: "
            f"bad response {answer[:_SHOWN]!r}",
            failed=True,
        )

    async def authorize(self, claim: Claim, name: str) -> tuple[str, ...]:
        """Ask about the user again: the service has one address for both."""
        await self.authenticate(Claim(name, claim.password, claim.address))
        return ()

    def authority(self, identity: Identity, claim: Claim) -> AskedAuthority:
        """Return what the service decides about the user."""
        return AskedAuthority(self.decider(identity), self._clock)

    def decider(self, identity: Identity) -> Decide:
        """Return what asks the service about the user."""

        async def decide(question: Question) -> bool | None:
            return await self._decided(identity, question)

        return decide

    async def _decided(self, identity: Identity, question: Question) -> bool | None:
        url, fields = self._question(identity, question)
        try:
            answer = await self._asked(url, fields)
        except WebError as error:
            self._failed(identity, question, str(error))
            return None
        word, _, rest = answer.partition(" ")
        if word.lower() == _DENY:
            if rest:
                self._log("info", f"HTTP authorization denied for path {url}: {rest}")
            return False
        if answer.lower() == _ALLOW:
            return True
        self._failed(identity, question, f"bad response {answer[:_SHOWN]!r}")
        return None

    def _question(self, identity: Identity, question: Question) -> tuple[str, dict[str, str]]:
        """Return the address and the parameters of a question."""
        tags = " ".join(identity.tags)
        fields = {"username": identity.name, "vhost": question.vhost}
        if question.about == VHOST:
            return self._paths.vhost, {**fields, "ip": identity.address, "tags": tags}
        fields |= {
            "resource": question.kind,
            "name": question.name,
            "permission": question.permission,
            "tags": tags,
        }
        if question.about != TOPIC:
            return self._paths.resource, fields
        fields |= {
            "routing_key": question.key,
            "variable_map.username": identity.name,
            "variable_map.vhost": question.vhost,
        }
        return self._paths.topic, fields

    async def _asked(self, url: str, fields: dict[str, str]) -> str:
        encoded = urlencode(fields)
        if self._paths.posts:
            answer = await self._client.post(url, encoded)
        else:
            answer = await self._client.get(f"{url}{'&' if '?' in url else '?'}{encoded}")
        if answer.status not in _ANSWERS:
            raise WebError(f"status {answer.status}")
        return answer.body.strip()

    def _failed(self, identity: Identity, question: Question, why: str) -> None:
        if question.about == VHOST:
            what = f"access to vhost '{question.vhost}'"
        elif question.about == RESOURCE:
            resource = f"{question.kind} '{question.name}' in vhost '{question.vhost}'"
            what = f"{question.permission} access to {resource}"
        else:
            resource = f"exchange '{question.name}' in vhost '{question.vhost}'"
            what = f"{question.permission} access to topic '{question.key}' in {resource}"
        self._log(
            "error",
            f"{what} refused for user '{identity.name}', backend rabbit_auth_backend_http "
            f"returned an error: {why}",
        )
