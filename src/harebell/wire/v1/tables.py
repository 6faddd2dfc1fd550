"""The composites of AMQP 1.0 as a table, from which `harebell.wire.v1.spec` makes types and codec.

A composite has a line; deeper indentation continues it, and its end in quotation marks says what it
is for. The number after a group has no meaning.

    open 10 : string container-id! hostname, uint max-frame-size=4294967295, symbol[] ...
    |    |    |      |           |                              |                  |
    name |    type   field       ! is mandatory                 = its default      [] is multiple
         the code of its descriptor, hexadecimal                <= its largest value, or most octets

The symbol of its descriptor is `amqp:NAME:list`. Nulls at the end of those with the word `whole`
are written: there are clients that read every field by its place.
"""

from __future__ import annotations

from harebell.wire.v1.spec import CompositeSpec, read_table

TABLE = """
transport 0
  open 10 whole : string container-id! hostname, uint max-frame-size=4294967295,
      ushort channel-max=65535, uint idle-time-out, symbol[] outgoing-locales incoming-locales
      offered-capabilities desired-capabilities, fields properties
    "Begin a connection; times are in milliseconds."
  begin 11 whole : ushort remote-channel, uint next-outgoing-id! incoming-window! outgoing-window!
      handle-max=4294967295, symbol[] offered-capabilities desired-capabilities, fields properties
    "Begin a session on a channel."
  attach 12 whole : string name!, uint handle!, boolean role!, ubyte snd-settle-mode=2<=2
      rcv-settle-mode=0<=1, any source target, map unsettled, boolean incomplete-unsettled=false,
      uint initial-delivery-count, ulong max-message-size,
      symbol[] offered-capabilities desired-capabilities, fields properties
    "Attach a link to a session; the role is true for a receiver."
  flow 13 : uint next-incoming-id incoming-window! next-outgoing-id! outgoing-window! handle
      delivery-count link-credit available, boolean drain=false echo=false, fields properties
    "State of a session, and with a handle of a link."
  transfer 14 : uint handle! delivery-id, binary delivery-tag<=32, uint message-format,
      boolean settled more=false, ubyte rcv-settle-mode<=1, any state,
      boolean resume=false aborted=false batchable=false
    "A message, or a part of it; its octets follow."
  disposition 15 : boolean role!, uint first! last, boolean settled=false, any state,
      boolean batchable=false
    "The state of deliveries from first to last, which is first if it is None."
  detach 16 whole : uint handle!, boolean closed=false, any error
    "Detach a link."
  end 17 whole : any error
    "End a session."
  close 18 whole : any error
    "Close a connection."
  error 1d whole : symbol condition!, string description, fields info
    "Why a link, session or connection ends, or a delivery is rejected."

security 0
  sasl-mechanisms 40 : symbol[] sasl-server-mechanisms!
    "The mechanisms that the server offers."
  sasl-init 41 : symbol mechanism!, binary initial-response, string hostname
    "The mechanism that the client chooses."
  sasl-challenge 42 : binary challenge!
    "A challenge of the server."
  sasl-response 43 : binary response!
    "A response of the client."
  sasl-outcome 44 : ubyte code!<=4, binary additional-data
    "How the login ended; the code 0 is success."

messaging 0
  received 23 : uint section-number!, ulong section-offset!
    "How far a delivery has arrived."
  accepted 24
    "The outcome of a delivery that was processed."
  rejected 25 : any error
    "The outcome of a delivery that is invalid."
  released 26
    "The outcome of a delivery that was not processed."
  modified 27 : boolean delivery-failed=false undeliverable-here=false, fields message-annotations
    "The outcome of a delivery that was not processed, and changes of its message."
  source 28 : any address, uint durable=0<=2, symbol expiry-policy=session-end, uint timeout=0,
      boolean dynamic=false, fields dynamic-node-properties, symbol distribution-mode, map filter,
      any default-outcome, symbol[] outcomes capabilities
    "Where messages of a link come from; times are in seconds."
  target 29 : any address, uint durable=0<=2, symbol expiry-policy=session-end, uint timeout=0,
      boolean dynamic=false, fields dynamic-node-properties, symbol[] capabilities
    "Where messages of a link go; times are in seconds."
  delete-on-close 2b
    "A dynamic node lives as long as the link that made it."
  delete-on-no-links 2c
    "A dynamic node lives as long as it has links."
  delete-on-no-messages 2d
    "A dynamic node lives as long as its link does or it has messages."
  delete-on-no-links-or-messages 2e
    "A dynamic node lives as long as it has links or messages."
  header 70 : boolean durable=false, ubyte priority, uint ttl, boolean first-acquirer=false,
      uint delivery-count=0
    "The section on how a message is delivered; the time to live is in milliseconds."
  properties 73 : any message-id, binary user-id, string to subject reply-to, any correlation-id,
      symbol content-type content-encoding, timestamp absolute-expiry-time creation-time,
      string group-id, uint group-sequence, string reply-to-group-id
    "The section of the standard properties of a message; times are in milliseconds since 1970."

transactions 0
  coordinator 30 : symbol[] capabilities
    "The target of a link that controls transactions."
  declare 31 : any global-id
    "Begin a transaction."
  discharge 32 : binary txn-id!, boolean fail=false
    "End a transaction; with fail it is rolled back."
  declared 33 : binary txn-id!
    "The outcome of declare."
  transactional-state 34 : binary txn-id!, any outcome
    "The state of a delivery that is part of a transaction."
"""

COMPOSITES: dict[int, CompositeSpec] = read_table(TABLE)
"""By the code of the descriptor."""
