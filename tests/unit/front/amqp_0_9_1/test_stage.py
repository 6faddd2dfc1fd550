"""Staged publishing: a batch is published as a whole and once, and only by the run that may."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from harebell.auth.permissions import Permissions
from harebell.base import limits
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import stage as s
from harebell.wire.v09.content import decode_properties
from harebell.wire.v09.frames import BODY, HEADER
from harebell.wire.v09.reply_codes import NAMES
from tests.unit.front.amqp_0_9_1.world import (
    HandStore,
    OctetPeer,
    World,
    frame,
    method_frame,
    publish,
)

SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("routing_key", pa.string()),
        ("exchange", pa.string()),
        ("properties", pa.struct([("message_id", pa.string()), ("expiration", pa.string())])),
        ("headers", pa.map_(pa.string(), pa.string())),
    ]
)
NAMED = {"properties": "properties.message_id,properties.expiration"}


def piece(*rows: dict[str, Any]) -> tuple[str, bytes]:
    """Rows as a record batch with the columns that they have: names and octets."""
    names = [name for name in SCHEMA.names if any(name in row for row in rows)]
    schema = pa.schema([SCHEMA.field(name) for name in names])
    filled = [{name: row.get(name) for name in names} for row in rows]
    data = pa.RecordBatch.from_pylist(filled, schema=schema).serialize().to_pybytes()
    return ",".join(NAMED.get(name, name) for name in names), bytes(data)


def values(*bodies: bytes, key: str = "q") -> tuple[str, bytes]:
    return piece(*({"value": body, "routing_key": key} for body in bodies))


def appended(
    data: tuple[str, bytes],
    *,
    batch: int = 0,
    part: int = 0,
    attempt: int = 1,
    number: int = 0,
    run: str = "r1",
    publisher: str = "p",
) -> bytes:
    """stage.append with its content."""
    columns, octets = data
    method = m.StageAppend(publisher, run, batch, part, attempt, number, columns.encode())
    header = b"\xf0\x02\0\0" + len(octets).to_bytes(8) + b"\0\0"
    found = method_frame(method) + frame(HEADER, 1, header)
    for at in range(0, len(octets), 4000):
        found += frame(BODY, 1, octets[at : at + 4000])
    return found


class Stage:
    """A world with a peer that has opened a run, and a queue q."""

    def __init__(self, world: World | None = None, run: str = "r1") -> None:
        self.world = world or World()
        self.broker = self.world.broker
        self.peer = self.world.peer()
        self.run = run
        self.peer.ask(m.QueueDeclare("q"))
        self.next = self.open()

    def open(self) -> int:
        answer = self.peer.ask(m.StageOpen("p", self.run))
        assert isinstance(answer, m.StageOpenOk), answer
        return answer.next

    def append(self, data: tuple[str, bytes], **options: Any) -> m.Method:
        self.peer.give(appended(data, **{"run": self.run, **options}))
        (answer,) = self.peer.methods()
        return answer

    def commit(self, *parts: tuple[int, int, int], batch: int = 0, **options: Any) -> Any:
        wanted = s.encode_parts(s.StagePart(*part) for part in parts)
        return self.peer.ask(m.StageCommit("p", self.run, batch, parts=wanted, **options))

    def again(self) -> None:
        """Open the channel once more after an error."""
        self.peer.send(m.ChannelCloseOk(), m.ChannelOpen())
        assert self.peer.methods() == [m.ChannelOpenOk()]

    def queue(self, name: str = "q") -> Any:
        return self.broker.vhosts["/"].queues[name]

    def bodies(self, name: str = "q") -> list[bytes]:
        found = []
        while (got := self.queue(name).get()) is not None:
            found.append(got[0].body)
        return found


def refused(answer: m.Method, code: int, text: str) -> None:
    """The channel was closed with that."""
    assert isinstance(answer, m.ChannelClose), answer
    assert (answer.reply_code, answer.reply_text) == (code, f"{NAMES.get(code, 'FENCED')} - {text}")


def test_a_batch_is_published_when_it_is_committed_and_not_before() -> None:
    stage = Stage()
    assert stage.next == 0
    assert stage.append(values(b"1", b"2"), part=0) == m.StageAppendOk(
        2, len(values(b"1", b"2")[1])
    )
    stage.append(values(b"3"), part=1, attempt=7)
    assert stage.queue().ready_count() == 0
    assert stage.commit((0, 1, 2), (1, 7, 1)) == m.StageCommitOk(rows=3)
    assert stage.bodies() == [b"1", b"2", b"3"]
    assert stage.open() == 1
    assert len(stage.broker.stages) == 0


def test_a_commit_that_is_repeated_does_nothing_and_says_so() -> None:
    stage = Stage()
    stage.append(values(b"1"))
    stage.commit((0, 1, 1))
    stage.append(values(b"1"))
    assert stage.commit((0, 1, 1)) == m.StageCommitOk(repeated=True)
    assert stage.commit((5, 5, 5)) == m.StageCommitOk(repeated=True)
    assert stage.bodies() == [b"1"]
    assert len(stage.broker.stages) == 0


def test_attempts_that_are_not_listed_are_dropped() -> None:
    stage = Stage()
    stage.append(values(b"failed"), attempt=1)
    stage.append(values(b"good"), attempt=2)
    assert stage.commit((0, 2, 1)).rows == 1
    assert stage.bodies() == [b"good"]


def test_an_empty_batch_is_committed_like_any_other() -> None:
    stage = Stage()
    assert stage.commit() == m.StageCommitOk()
    assert stage.commit(batch=4) == m.StageCommitOk()
    assert stage.open() == 5


def test_pieces_of_an_attempt_follow_each_other_and_may_come_twice() -> None:
    stage = Stage()
    stage.append(values(b"1"), number=0)
    assert stage.append(values(b"2"), number=1).rows == 2
    assert stage.append(values(b"2"), number=1).rows == 2
    assert stage.commit((0, 1, 2)).rows == 2
    assert stage.bodies() == [b"1", b"2"]


def test_a_piece_that_is_missing_or_changed_is_an_error() -> None:
    stage = Stage()
    answer = stage.append(values(b"2"), number=1)
    refused(answer, 406, "piece 1 of part 0 of batch 0 of publisher 'p' came, and 0 is the next")
    stage.again()
    stage.append(values(b"1"))
    answer = stage.append(values(b"other"))
    refused(
        answer,
        406,
        "piece 0 of part 0 of batch 0 of publisher 'p' is here already, and was another",
    )


@pytest.mark.parametrize(
    ("part", "here"), [((0, 1, 3), 2), ((0, 2, 2), 0), ((1, 1, 1), 0), ((0, 1, 1), 2)]
)
def test_a_part_that_is_not_as_it_is_wanted_ends_the_commit(
    part: tuple[int, int, int], here: int
) -> None:
    stage = Stage()
    stage.append(values(b"1", b"2"))
    refused(
        stage.commit(part),
        406,
        f"batch 0 of publisher 'p' cannot be committed: {here} of {part[2]} rows of its part "
        f"{part[0]} (attempt {part[1]}) are here; send the batch again",
    )
    assert stage.queue().ready_count() == 0
    stage.again()
    assert stage.commit((0, 1, 2)).rows == 2


def test_a_part_is_committed_once_only() -> None:
    stage = Stage()
    stage.append(values(b"1"))
    refused(
        stage.commit((0, 1, 1), (0, 1, 1)),
        406,
        "part 0 of batch 0 of publisher 'p' is to be committed twice",
    )


def test_a_run_that_another_has_replaced_is_fenced_for_ever() -> None:
    stage = Stage()
    stage.append(values(b"old"))
    other = Stage(stage.world, run="r2")
    text = "run 'r1' of publisher 'p' is fenced: another run has taken its place"
    refused(stage.commit((0, 1, 1)), 412, text)
    stage.again()
    refused(stage.append(values(b"old")), 412, text)
    stage.again()
    refused(stage.peer.ask(m.StageOpen("p", "r1")), 412, text)
    stage.again()
    refused(stage.peer.ask(m.StageAbort("p", "r1", 0)), 412, text)
    other.append(values(b"new"))
    assert other.commit((0, 1, 1)).rows == 1
    assert stage.bodies() == [b"new"]


def test_rows_staged_by_an_older_run_do_not_mix_with_new_ones() -> None:
    stage = Stage()
    stage.append(values(b"old"))
    other = Stage(stage.world, run="r2")
    assert other.append(values(b"new")).rows == 1


def test_a_run_that_was_never_opened_is_not_found() -> None:
    stage = Stage()
    stage.run = "other"
    refused(stage.append(values(b"1")), 404, "run 'other' of publisher 'p' was not opened here")


@pytest.mark.parametrize(("publisher", "run"), [("", "r"), ("p", "")])
def test_publisher_and_run_have_names(publisher: str, run: str) -> None:
    peer = World().peer()
    missing = "run" if publisher else "publisher"
    refused(peer.ask(m.StageOpen(publisher, run)), 406, f"stage.open: the {missing} has no name")


def test_a_publisher_of_another_user_is_refused_until_it_is_handed_over() -> None:
    stage = Stage()
    stage.commit(batch=7)
    stage.world.users.add("eve", "eve", vhosts=("/",))
    peer = stage.world.connect()
    peer.give(b"AMQP\0\0\x09\x01")
    ok = m.ConnectionStartOk({"capabilities": {}}, "PLAIN", b"\0eve\0eve", "en_US")
    peer.send(ok, channel=0)
    peer.send(m.ConnectionTuneOk(0, 0, 0), m.ConnectionOpen("/"), channel=0)
    peer.methods()
    peer.send(m.ChannelOpen())
    peer.methods()
    refused(
        peer.ask(m.StageOpen("p", "theirs")),
        403,
        "publisher 'p' is another user's, so 'eve' would publish again what it has published: "
        "an administrator can do `harebell publishers hand-over p --to eve`",
    )
    peer.send(m.ChannelCloseOk(), m.ChannelOpen())
    peer.methods()
    # What is staged for another user stays, too.
    assert peer.ask(m.StageOpen("q", "theirs")) == m.StageOpenOk(next=0)
    stage.append(values(b"1"), batch=8)
    assert len(stage.broker.stages) == 1
    publishers = stage.broker.publishers
    stage.broker.hand_over_publishers(publishers.query("/", "p", None), "eve")
    assert len(stage.broker.stages) == 0
    assert peer.ask(m.StageOpen("p", "theirs")) == m.StageOpenOk(next=8)
    refused(
        stage.append(values(b"1"), batch=8), 404, "run 'r1' of publisher 'p' was not opened here"
    )


def test_an_abort_forgets_what_is_staged() -> None:
    stage = Stage()
    stage.append(values(b"1", b"2"))
    assert stage.peer.ask(m.StageAbort("p", "r1", 0)) == m.StageAbortOk(rows=2)
    assert len(stage.broker.stages) == 0
    assert stage.peer.ask(m.StageAbort("p", "r1", 0)) == m.StageAbortOk(rows=0)


def test_rows_get_the_defaults_of_the_commit() -> None:
    stage = Stage()
    stage.append(piece({"value": b"1"}))
    assert stage.commit((0, 1, 1), routing_key="q", delivery_mode=2).rows == 1
    message = stage.queue().get()[0]
    assert decode_properties(message.raw).delivery_mode == 2


def test_rows_say_themselves_where_they_go() -> None:
    stage = Stage()
    for key in ("a", "b"):
        stage.peer.ask(m.QueueDeclare(f"to-{key}"))
        stage.peer.ask(m.QueueBind(f"to-{key}", "amq.direct", key))
    rows = [
        {"value": b"1", "exchange": "amq.direct", "routing_key": "a", "headers": [("n", "1")]},
        {"value": b"2", "exchange": "amq.direct", "routing_key": "b"},
        {"value": b"3", "exchange": "", "routing_key": "q"},
    ]
    stage.append(piece(*rows))
    assert stage.commit((0, 1, 3)) == m.StageCommitOk(rows=3)
    assert [stage.bodies(name) for name in ("to-a", "to-b", "q")] == [[b"1"], [b"2"], [b"3"]]


def test_rows_without_a_queue_are_counted() -> None:
    stage = Stage()
    stage.append(values(b"1", b"2", key="nowhere"))
    assert stage.commit((0, 1, 2)) == m.StageCommitOk(rows=2, unroutable=2)


def test_mandatory_rows_without_a_queue_end_the_commit_and_nothing_is_published() -> None:
    stage = Stage()
    keys = ("q", "a", "b", "c", "d", "a")
    stage.append(piece(*({"value": b"", "routing_key": key} for key in keys)))
    refused(
        stage.commit((0, 1, 6), mandatory=True),
        312,
        "5 of 6 rows of batch 0 reach no queue, with routing key 'a' at exchange '', 'b' at "
        "exchange '', 'c' at exchange '' and 1 more; nothing was published",
    )
    assert stage.queue().ready_count() == 0
    stage.again()
    assert stage.commit((0, 1, 6)) == m.StageCommitOk(rows=6, unroutable=5)


def test_rows_without_a_queue_go_to_the_dead_letter_exchange() -> None:
    stage = Stage()
    stage.peer.ask(m.ExchangeDeclare("lost", "fanout"))
    stage.peer.ask(m.QueueDeclare("found"))
    stage.peer.ask(m.QueueBind("found", "lost", ""))
    stage.append(piece({"value": b"1", "routing_key": "q"}, {"value": b"2", "routing_key": "x"}))
    answer = stage.commit((0, 1, 2), mandatory=True, dead_letter="lost")
    assert answer == m.StageCommitOk(rows=2, unroutable=1)
    message = stage.queue("found").get()[0]
    assert (message.exchange, message.routing_key, message.body) == ("lost", "x", b"2")
    assert stage.bodies() == [b"1"]


def test_headers_that_no_frame_has_room_for_are_refused() -> None:
    stage = Stage()
    # Around them: a frame, a content header, and a table with one name, a type and a size.
    limit = limits.FRAME_MAX_BYTES
    text = "x" * (limit - 8 - 14 - 4 - 2 - 5)
    row = {"value": b"1", "routing_key": "q"}
    stage.append(piece(row | {"headers": [("a", text)]}))
    assert isinstance(stage.commit((0, 1, 1)), m.StageCommitOk)
    stage.append(piece(row | {"headers": [("a", text + "x")]}), batch=1)
    refused(
        stage.commit((0, 1, 1), batch=1),
        406,
        f"part 0 of batch 1: row 0: its properties and headers need a frame of {limit + 1} octets, "
        f"and the most is {limit}",
    )
    assert stage.queue().ready_count() == 1


def test_a_row_that_is_no_message_is_named_and_nothing_is_published() -> None:
    stage = Stage()
    stage.append(values(b"good"))
    stage.append(
        piece({"value": b"1", "routing_key": "q"}, {"value": None, "routing_key": "q"}), part=3
    )
    refused(
        stage.commit((0, 1, 1), (3, 1, 2)),
        406,
        "part 3 of batch 0: row 1: value is null, and a message needs a body",
    )
    assert stage.queue().ready_count() == 0


@pytest.mark.parametrize(
    ("columns", "data", "text"),
    [
        ("key", b"", "there is no column 'key'; there are value, routing_key, exchange, "
         "properties, headers, headers_raw"),
        ("value", b"", "a record batch has more than 0 octets"),
        ("value", b"0123456789", "the octets do not begin like a message of Arrow's IPC format"),
        ("", b"", "there is no column ''; there are value, routing_key, exchange, properties, "
         "headers, headers_raw"),
        ("value,properties.age", b"", "there is no property 'age'; there are content_type, "),
    ],
)  # fmt: skip
def test_a_piece_that_cannot_be_read_is_refused_at_once(
    columns: str, data: bytes, text: str
) -> None:
    answer = Stage().append((columns, data))
    assert isinstance(answer, m.ChannelClose)
    assert answer.reply_code == 406
    assert answer.reply_text.startswith(f"PRECONDITION_FAILED - part 0 of batch 0: {text}")


def test_columns_that_are_not_those_of_the_batch_are_refused() -> None:
    _, data = values(b"1")
    refused(
        Stage().append(("value", data)),
        406,
        "part 0 of batch 0: the batch has 2 arrays, and 1 belong to the columns value",
    )


def test_every_exchange_needs_the_permission_to_write() -> None:
    stage = Stage()
    guest = stage.peer.connection.user
    stage.append(
        piece(
            {"value": b"1", "routing_key": "q"},
            {"value": b"2", "routing_key": "q", "exchange": "amq.direct"},
        )
    )
    guest.permissions["/"] = Permissions(".*", "^amq.default$", ".*")
    refused(
        stage.commit((0, 1, 2)),
        403,
        "write access to exchange 'amq.direct' in vhost '/' refused for user 'guest'",
    )
    assert stage.queue().ready_count() == 0


def test_an_exchange_that_is_missing_or_internal_ends_the_commit() -> None:
    stage = Stage()
    stage.append(piece({"value": b"1"}))
    refused(stage.commit((0, 1, 1), exchange="no"), 404, "no exchange 'no' in vhost '/'")
    stage.again()
    stage.peer.ask(m.ExchangeDeclare("inner", "fanout", internal=True))
    refused(
        stage.commit((0, 1, 1), exchange="inner"),
        403,
        "cannot publish to internal exchange 'inner' in vhost '/'",
    )


def test_a_queue_that_is_full_ends_the_commit_before_anything_is_published() -> None:
    stage = Stage()
    limits = {"x-max-length": 2, "x-overflow": "reject-publish"}
    stage.peer.ask(m.QueueDeclare("small", arguments=limits))
    rows = [{"value": b"", "routing_key": key} for key in ("q", "small", "small", "small")]
    stage.append(piece(*rows))
    refused(
        stage.commit((0, 1, 4)),
        406,
        "batch 0 has 4 rows, and a queue that gets some of them has no room; nothing was published",
    )
    assert stage.queue().ready_count() == 0


def test_checks_of_a_publish_hold_for_staged_batches() -> None:
    stage = Stage()
    row = {"value": b"1", "routing_key": "q", "properties": {"expiration": "soon"}}
    stage.append(piece(row))
    answer = stage.commit((0, 1, 1))
    assert isinstance(answer, m.ChannelClose)
    assert answer.reply_code == 406
    assert "invalid expiration" in answer.reply_text


def test_a_message_of_a_batch_expires() -> None:
    stage = Stage()
    row = {"value": b"1", "routing_key": "q", "properties": {"expiration": "60000"}}
    stage.append(piece(row))
    assert stage.commit((0, 1, 1)).rows == 1
    assert stage.queue().get()[0].due == stage.world.clock.steady + 60_000


def test_a_batch_cannot_be_part_of_a_transaction() -> None:
    stage = Stage()
    stage.peer.ask(m.TxSelect())
    refused(stage.commit(), 406, "a staged batch cannot be part of a transaction")


def test_the_commit_is_told_when_the_disk_has_it() -> None:
    world = World(slow=True)
    peer = world.peer()
    peer.send(m.QueueDeclare("q", durable=True), m.StageOpen("p", "r1"))
    world.commit()
    assert isinstance(peer.methods()[-1], m.StageOpenOk)
    peer.give(appended(values(b"1")))
    peer.methods()
    parts = s.encode_parts([s.StagePart(0, 1, 1)])
    peer.send(m.StageCommit("p", "r1", 0, parts=parts))
    assert peer.methods() == []
    peer.send(m.StageCommit("p", "r1", 0, parts=parts))
    assert peer.methods() == []
    world.commit()
    assert peer.methods() == [m.StageCommitOk(rows=1), m.StageCommitOk(repeated=True)]


def test_parts_that_are_cut_short_close_the_connection() -> None:
    stage = Stage()
    stage.peer.send(m.StageCommit("p", "r1", 0, parts=bytes(21)))
    (answer,) = stage.peer.methods()
    assert isinstance(answer, m.ConnectionClose)
    assert answer.reply_code == 502


def test_publishing_goes_on_beside_a_stage() -> None:
    stage = Stage()
    stage.peer.give(publish(b"0") + appended(values(b"1")) + publish(b"2"))
    stage.peer.methods()
    stage.commit((0, 1, 1))
    assert stage.bodies() == [b"0", b"2", b"1"]


def test_a_channel_that_closes_in_the_middle_of_a_piece_leaves_nothing() -> None:
    stage = Stage()
    octets = appended(values(b"1"))
    stage.peer.give(octets[:-40])
    stage.peer.connection.release()
    assert len(stage.broker.stages) == 0


def made(world: World) -> OctetPeer:
    """Another peer of the same world."""
    return world.peer()


def test_several_connections_write_parts_of_one_batch() -> None:
    stage = Stage()
    for part in range(3):
        peer = made(stage.world)
        peer.give(appended(values(bytes([part])), part=part))
        assert peer.methods()[0].rows == 1  # type: ignore[attr-defined]
    assert stage.commit((2, 1, 1), (0, 1, 1), (1, 1, 1)).rows == 3
    assert stage.bodies() == [b"\2", b"\0", b"\1"]


# --- in slices ----------------------------------------------------------------------------------


class Turned(Stage):
    """A stage on a broker whose turns have a budget of so many units."""

    def __init__(self, world: World | None = None, units: int = 300) -> None:
        super().__init__(world)
        self.world.registry.turns.limit(units, lambda: None)
        self.turns = 0

    def begin(self, *parts: tuple[int, int, int], batch: int = 0) -> None:
        """Ask for a commit, and have none of it answered yet."""
        wanted = s.encode_parts(s.StagePart(*part) for part in parts)
        self.peer.send(m.StageCommit("p", self.run, batch, parts=wanted))

    def turn(self) -> None:
        self.turns += 1
        self.world.clock.advance(1)
        self.broker.timers.run()
        self.world.registry.turns.next_turn()

    def open(self) -> int:
        """The same where somebody has to commit."""
        self.peer.send(m.StageOpen("p", self.run))
        if isinstance(self.world.store, HandStore):
            self.world.commit()
        (answer,) = self.peer.methods()
        assert isinstance(answer, m.StageOpenOk), answer
        return answer.next

    def asked(self, peer: OctetPeer, *methods: m.Method) -> m.Method:
        """Turns until another peer has an answer."""
        peer.send(*methods)
        while not (found := peer.methods()):
            assert self.turns < 1_000, "it never ends"
            self.turn()
        (answer,) = found
        return answer

    def finish(self) -> m.Method:
        """Turns until there is an answer."""
        return self.asked(self.peer)


def _many(count: int, start: int = 0) -> tuple[str, bytes]:
    return values(*(b"%d" % number for number in range(start, start + count)))


def test_a_large_batch_takes_many_turns_and_is_seen_when_it_is_whole() -> None:
    stage = Turned()
    stage.append(_many(20_000))
    other = stage.world.peer()
    stage.begin((0, 1, 20_000))
    stage.turn()
    other.give(publish(b"between", key="q"))
    assert stage.queue().ready_count() == 0
    assert stage.asked(other, m.BasicGet("q")) == m.BasicGetEmpty()
    assert stage.finish() == m.StageCommitOk(rows=20_000)
    assert stage.turns > 5
    found = stage.bodies()
    assert [each for each in found if each != b"between"] == [b"%d" % n for n in range(20_000)]
    assert len(found) == 20_001
    assert 0 < found.index(b"between") < 20_000


def test_methods_sent_meanwhile_wait_for_the_end() -> None:
    stage = Turned()
    stage.append(_many(2_000))
    stage.begin((0, 1, 2_000))
    stage.peer.send(m.QueueDeclare("q", passive=True))
    answers = []
    while len(answers) < 2:
        stage.turn()
        answers += stage.peer.methods()
    assert answers == [m.StageCommitOk(rows=2_000), m.QueueDeclareOk("q", 2_000, 0)]


def test_a_row_that_cannot_be_published_takes_those_before_it_back() -> None:
    stage = Turned()
    stage.append(_many(2_000))
    stage.append(values(b"x", key="nowhere"), number=1)
    wanted = s.encode_parts([s.StagePart(0, 1, 2_001)])
    stage.peer.send(m.StageCommit("p", "r1", 0, parts=wanted, mandatory=True))
    answer = stage.finish()
    assert isinstance(answer, m.ChannelClose)
    assert answer.reply_code == 312
    assert (stage.queue().ready_count(), stage.bodies()) == (0, [])
    assert stage.asked(stage.peer, m.ChannelCloseOk(), m.ChannelOpen()) == m.ChannelOpenOk()
    wanted = s.encode_parts([s.StagePart(0, 1, 2_001)])
    stage.peer.send(m.StageCommit("p", "r1", 0, parts=wanted))
    assert stage.finish() == m.StageCommitOk(rows=2_001, unroutable=1)
    assert len(stage.bodies()) == 2_000


def test_a_run_that_is_replaced_amid_its_commit_publishes_nothing() -> None:
    stage = Turned()
    stage.append(_many(9_000))
    other = stage.world.peer()
    stage.begin((0, 1, 9_000))
    stage.turn()
    assert stage.asked(other, m.StageOpen("p", "r2")) == m.StageOpenOk(next=0)
    refused(
        stage.finish(), 412, "run 'r1' of publisher 'p' is fenced: another run has taken its place"
    )
    assert stage.bodies() == []
    assert len(stage.broker.stages) == 0


def test_a_commit_goes_on_when_the_client_is_gone() -> None:
    stage = Turned()
    stage.append(_many(2_000))
    stage.begin((0, 1, 2_000))
    stage.turn()
    stage.peer.connection.eof()
    for _ in range(50):
        stage.turn()
    assert len(stage.bodies()) == 2_000
    other = stage.world.peer()
    assert other.ask(m.StageOpen("p", "r1")) == m.StageOpenOk(next=1)
    parts = s.encode_parts([s.StagePart(0, 1, 2_000)])
    other.send(m.StageCommit("p", "r1", 0, parts=parts))
    assert other.methods() == [m.StageCommitOk(repeated=True)]


def test_two_commits_come_one_after_the_other() -> None:
    stage = Turned()
    stage.append(_many(2_000))
    other = stage.world.peer()
    other.ask(m.StageOpen("o", "r1"))
    other.give(appended(_many(2_000, 2_000), publisher="o"))
    other.methods()
    stage.begin((0, 1, 2_000))
    parts = s.encode_parts([s.StagePart(0, 1, 2_000)])
    other.send(m.StageCommit("o", "r1", 0, parts=parts))
    assert stage.finish() == m.StageCommitOk(rows=2_000)
    answers: list[m.Method] = []
    while not answers:
        stage.turn()
        answers = other.methods()
    assert answers == [m.StageCommitOk(rows=2_000)]
    assert stage.bodies() == [b"%d" % number for number in range(4_000)]


def test_rows_are_seen_when_the_disk_has_their_batch() -> None:
    world = World(slow=True)
    stage = Turned(world)
    stage.peer.send(m.QueueDeclare("d", durable=True))
    world.commit()
    stage.peer.methods()
    stage.append(values(b"1", b"2", key="d"))
    stage.begin((0, 1, 2))
    for _ in range(5):
        stage.turn()
    assert stage.peer.methods() == []
    assert stage.queue("d").ready_count() == 0
    world.commit()
    assert stage.peer.methods() == [m.StageCommitOk(rows=2)]
    assert stage.bodies("d") == [b"1", b"2"]


def test_a_commit_waits_while_the_disk_is_short() -> None:
    stage = Turned()
    stage.append(_many(9_000))
    stage.begin((0, 1, 9_000))
    stage.turn()
    stage.world.registry.publishers.set_short("disk", True)
    for _ in range(200):
        stage.turn()
    assert stage.peer.methods() == []
    stage.world.registry.publishers.set_short("disk", False)
    assert stage.finish() == m.StageCommitOk(rows=9_000)
