"""The methods that only transitional 0-10 has; see `harebell.wire.v09.methods`.

They are those of sessions, execution, queries, messages, and of dtx in two classes.
"""

from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL
from harebell.wire.v09.spec import own_types

globals().update(own_types(__name__, AMQP_0_10_TRANSITIONAL))
