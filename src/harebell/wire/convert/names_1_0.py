"""Names of headers and annotations that stand for what the other side does not have.

docs/protocols/conversion.md has the tables. Names without `amqp` are RabbitMQ's.
"""

from __future__ import annotations

# --- headers of basic that are fields of the properties in 1.0 ------------------------------------
TO = b"x-amqp-to"
SUBJECT = b"x-amqp-subject"
GROUP_SEQUENCE = b"x-amqp-group-sequence"
REPLY_TO_GROUP_ID = b"x-amqp-reply-to-group-id"
EXPIRES_AT = b"x-amqp-expires-at"
MESSAGE_ID = b"x-amqp-message-id"
CORRELATION_ID = b"x-amqp-correlation-id"
USER_ID = b"x-amqp-user-id"
APP_ID = b"x-amqp-app-id"
REPLY_EXCHANGE = b"x-amqp-reply-exchange"

# --- headers of basic that have no readable form --------------------------------------------------
SECTIONS = b"x-amqp-sections"
"""Encoded sections: what the headers and properties of basic do not say exactly."""
DATA_SECTIONS = b"x-amqp-data-sections"
"""The lengths of the data sections that were joined."""

# --- annotations of 1.0 that are properties or headers of basic -----------------------------------
TYPE = b"x-basic-type"
DELIVERY_MODE = b"x-basic-delivery-mode"
CC = b"x-cc"
DEATHS = b"x-opt-deaths"
CLUSTER_ID = b"x-amqp-cluster-id"
EXPIRATION = b"x-amqp-expiration"
HEADERS = b"x-amqp-headers"
"""Headers whose values application properties cannot have."""
BASIC = b"x-amqp-basic"
"""An encoded property list: what 1.0 does not have at all."""

EXCHANGE = b"x-exchange"
ROUTING_KEY = b"x-routing-key"
"""Set by the broker on delivery."""

CC_HEADER = b"CC"
BCC_HEADER = b"BCC"
X_DEATH = b"x-death"

FROM_ANNOTATIONS = frozenset(
    (TYPE, DELIVERY_MODE, CC, DEATHS, CLUSTER_ID, EXPIRATION, HEADERS, BASIC, EXCHANGE, ROUTING_KEY)
)
"""Annotations that are something else in basic. A header of such a name travels in `BASIC`."""
TO_FIELDS = frozenset(
    (
        *(TO, SUBJECT, GROUP_SEQUENCE, REPLY_TO_GROUP_ID, EXPIRES_AT, MESSAGE_ID, CORRELATION_ID),
        *(USER_ID, APP_ID, REPLY_EXCHANGE, SECTIONS, DATA_SECTIONS, X_DEATH),
    )
)
"""Headers that are something else in 1.0. An annotation of such a name travels in `SECTIONS`."""

AMQP_1_0 = b"amqp-1.0"
"""The type of a message of basic whose body is sections of AMQP 1.0."""
