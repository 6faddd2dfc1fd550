"""A file becomes a description, or every complaint about it, each with its line and the mend."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.pipeline.checking import check
from harebell.pipeline.errors import DescriptionError
from harebell.pipeline.spec.description import Body, Description, Route, Trigger, Watermark

RIGHT = """
pipeline: orders
source:
  queue: orders
  maxOffsetsPerTrigger: 1000
  body: {format: json, schema: "id BIGINT, total DOUBLE", onError: drop}
steps:
  - name: big
    sql: SELECT data.*, timestamp FROM source WHERE data.total > 100
  - python: my_steps:enrich
    watermark: {column: timestamp, delay: 10 minutes}
sinks:
  - parquet: lake/orders
    partitionBy: [id]
  - exchange: invoices
    where: total > 1000
    routingKey: concat('eu.', id)
    mandatory: true
trigger: 5s
spark: {spark.sql.shuffle.partitions: 4}
"""


def described(directory: Path, text: str, **variables: str) -> Description:
    (directory / "my_steps.py").write_text("")
    file = directory / "p.yaml"
    file.write_text(text.lstrip("\n"))
    return check(file, variables)


def test_options_of_a_source_have_the_names_of_the_documentation(tmp_path: Path) -> None:
    text = "source: {Queue: q, URL: 'amqp://host/'}\nsinks: [exchange: out]\n"
    (source,) = described(tmp_path, text).sources
    # By this name sinks without an address of their own find that of the source.
    assert source.options == {"queue": "q", "url": "amqp://host/"}


def test_a_file_becomes_a_description(tmp_path: Path) -> None:
    found = described(tmp_path, RIGHT)
    (source,) = found.sources
    assert (found.name, found.directory) == ("orders", tmp_path.resolve())
    assert source.options == {"queue": "orders", "maxOffsetsPerTrigger": "1000"}
    assert source.body == Body("json", "id BIGINT, total DOUBLE", "drop")
    big, enrich = found.steps
    assert (big.name, big.stateful) == ("big", False)
    assert (enrich.name, enrich.python, enrich.source) == ("step2", "my_steps:enrich", "big")
    assert enrich.watermark == Watermark("timestamp", "10 minutes")
    parquet, exchange = found.sinks
    assert parquet.target == str(tmp_path.resolve() / "lake/orders")
    assert (parquet.source, parquet.partition_by) == ("step2", ("id",))
    assert (exchange.kind, exchange.target, exchange.where) == (
        "exchange",
        "invoices",
        "total > 1000",
    )
    assert exchange.options == {"routingKeyExpression": "concat('eu.', id)", "mandatory": "true"}
    assert found.trigger == Trigger("every", 5.0)
    assert found.checkpoint == tmp_path.resolve() / "checkpoints" / "orders"
    assert found.settings == {"spark.sql.shuffle.partitions": "4"}
    assert not found.per_batch
    assert not found.stateful


def test_names_of_queues_and_binding_keys_may_be_a_list(tmp_path: Path) -> None:
    found = described(tmp_path, "source: {queues: [q, 'r,s']}\nsinks: [{console: }]\n")
    assert found.sources[0].options == {"queues": '["q", "r,s"]'}
    text = "source: {exchange: e, bindingKeys: [eu.#, us]}\nsinks: [{console: }]\n"
    assert described(tmp_path, text).sources[0].options["bindingKeys"] == '["eu.#", "us"]'


def test_a_file_without_much_has_defaults(tmp_path: Path) -> None:
    found = described(tmp_path, "source: {queue: q}\nsinks: [{console: }]\n")
    assert (found.name, found.trigger, found.mode) == ("p", Trigger("now"), "append")
    assert found.sinks[0].source == "source"


def test_bad_rows_that_go_somewhere_make_the_steps_run_per_micro_batch(tmp_path: Path) -> None:
    text = """
source:
  queue: q
  body: {format: text, onError: dead-letter, deadLetter: {queue: bad}}
sinks: [{queue: "it's"}]
"""
    found = described(tmp_path, text)
    assert found.sources[0].body.dead_letter == Route("", "bad")
    assert found.per_batch
    assert found.sinks[0].options["routingKeyExpression"] == "'it\\'s'"


def test_sinks_of_several_views_make_the_steps_run_per_micro_batch(tmp_path: Path) -> None:
    text = """
source: {queue: q}
steps: [{name: a, sql: SELECT * FROM source}]
sinks: [{console: , from: source}, {console: , from: a}]
"""
    found = described(tmp_path, text)
    assert found.per_batch
    assert [sink.name for sink in found.sinks] == ["console", "console-2"]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("[1]", 1, "a pipeline is a mapping"),
        ("sinks: [{console: }]", 1, "a pipeline needs either source or sources"),
        ("a: " + "[" * 5_000, 1, "there are more than 20 values within each other"),
        (RIGHT.replace("queue: orders", "queue: orders\n  pushdown: true"), 4, "option pushdown"),
        (
            RIGHT.replace("queue: orders", "queue: orders\n  endingOffsets: latest"),
            4,
            "the option endingOffsets belongs to spark.read",
        ),
        (
            RIGHT.replace("queue: orders", "queue: orders\n  bodyFormat: text"),
            4,
            "bodyFormat does not go with body",
        ),
        (RIGHT.replace("name: big", "name: Source"), 7, "the name Source is taken: see line 3"),
        (RIGHT + "report: maybe\n", 20, "report is true or false, not 'maybe'"),
        (RIGHT + "master: nonsense\n", 20, "unknown master 'nonsense'"),
        ("source: {queue: q}", 1, "a pipeline needs sinks"),
        ("source: {queue: q}\nsinks: []", 2, "a pipeline needs sinks"),
        ("pipeline: a/b\nsource: {queue: q}", 1, "the name 'a/b' cannot be used"),
        ("source:\n  quue: q", 2, "unknown option 'quue': did you mean queue?"),
        ("source:\n  queue: q\n  longPollMs: x", 3, "the option longPollMs must be a whole number"),
        ("source: q", 1, "a source is a mapping such as {queue: orders}, not 'q'"),
        ("source:\n  queue: [q]", 2, "queue must be a text or a number, not a list"),
        ("sources: {}", 1, "sources must be a mapping of names to sources"),
        ("sources: {a-b: {queue: q}}", 1, "the name 'a-b' cannot be used in SQL"),
        ("source:\n  queue: q\n  body: {format: xml}", 3, "the format of bodies is one of binary"),
        ("source:\n  queue: q\n  body: {format: json}", 3, "need their schema"),
        (
            "source:\n  queue: q\n  body:\n    format: json\n    schema: id BIGIT",
            5,
            "there is no type BIGIT: did you mean BIGINT?",
        ),
        ("source:\n  queue: q\n  body: {schema: a INT}", 3, "of the format binary have no schema"),
        ("source:\n  queue: q\n  body: {objects: many}", 3, "of the format binary have no objects"),
        (
            "source:\n  queue: q\n  body: {format: json, schema: a INT, objects: all}",
            3,
            "objects is one or many, not all",
        ),
        ("source:\n  queue: q\n  body: {format: text, onError: x}", 3, "onError is one of fail"),
        (
            "source:\n  queue: q\n  body: {format: text, onError: dead-letter}",
            3,
            "onError: dead-letter and deadLetter: {exchange: ..., routingKey: ...} belong together",
        ),
        (
            "source:\n  queue: q\n  body: {format: text, onError: dead-letter, deadLetter: {}}",
            3,
            "deadLetter needs either exchange",
        ),
        ("source:\n  queue: q\n  watermark: 5s", 3, "watermark is a mapping"),
        (
            "source:\n  queue: q\n  watermark: {column: t, delay: soon}",
            3,
            "the delay 'soon' is no time: write 10 minutes",
        ),
        ("source: {queue: q}\nsteps: x", 2, "steps must be a list, not 'x'"),
        ("source: {queue: q}\nsteps:\n  - x", 3, "a step is {sql: ...} or {python: ...}, not 'x'"),
        ("source: {queue: q}\nsteps:\n  - name: a", 3, "a step needs either sql or python"),
        (
            "source: {queue: q}\nsteps:\n  - sql: SELECT 1",
            3,
            "this reads no view; there are source",
        ),
        (
            "source: {queue: q}\nsteps:\n  - sql: |\n      SELECT *\n      FROM sourc",
            5,
            "there is no view 'sourc' before this step: did you mean source?",
        ),
        (
            "source: {queue: q}\nsteps:\n  - sql: |\n      SELECT 1\n      FROM a\n      WHERE",
            6,
            "this is no SQL near 'WHERE'",
        ),
        ("source: {queue: q}\nsteps:\n  - python: f", 3, "'f' names no function"),
        ("source: {queue: q}\nsteps:\n  - python: no_such:f", 3, "there is no module 'no_such'"),
        (
            "source: {queue: q}\nsteps:\n  - {python: my_steps:f, from: nope}",
            3,
            "there is no view 'nope'",
        ),
        (
            "source: {queue: q}\nsteps:\n  - {sql: SELECT * FROM source, from: source}",
            3,
            "leave out from",
        ),
        (
            "source: {queue: q}\nsteps:\n  - {name: source, sql: SELECT * FROM source}",
            3,
            "the name source is taken: see line 1",
        ),
        (
            RIGHT.replace("SELECT data.*", "SELECT data.totl").replace("my_steps:", "x_steps:"),
            8,
            "data has no field 'totl': did you mean total?",
        ),
        (RIGHT.replace("data.total >", "total >"), 8, "there is no column 'total': did you mean"),
        (RIGHT.replace("WHERE data", "WHERE  conact(data"), 8, "this is no SQL"),
        (
            RIGHT.replace("SELECT data.*", "SELECT conact(data.id) AS x"),
            8,
            "there is no function 'conact': did you mean concat?",
        ),
        (
            "source: {queue: q}\nsteps:\n  - sql: |\n      SELECT\n        valeu\n"
            "      FROM source\nsinks: [{console: }]",
            5,
            "there is no column 'valeu': did you mean value?",
        ),
        (
            "source: {queue: q}\nsteps:\n  - sql: SELECT offset AS n FROM source\n"
            "sinks:\n  - console:\n    where: m > 1",
            6,
            "there is no column 'm': known are n",
        ),
        ("source: {queue: q}\nsinks:\n  - console:\n    where: offset", 4, "and no condition"),
        ("source: {queue: q}\nsinks:\n  - console:\n    where: offset + 1", 4, "no condition"),
        ("source: {queue: q}\nsinks:\n  - console:\n    where: headers > 1", 4, "be compared"),
        ("source: {queue: q}\nsinks:\n  - console:\n    where: lenth(value) > 1", 4, "lenth"),
        (
            "source: {queue: q}\nsinks:\n  - delta: d\n    partitionBy: [dat, properties]",
            4,
            "partitionBy of the Delta table",
        ),
        (
            "source: {queue: q}\nsinks:\n  - delta: d\n    partitionBy: [dat, properties]",
            4,
            "partitionBy names the column properties, which is STRUCT<",
        ),
        (
            "source: {queue: q}\nsteps:\n  - sql: SELECT offset FROM source\n"
            "sinks:\n  - parquet: d\n    partitionBy: offset",
            6,
            "partitionBy names all columns",
        ),
        (
            "source: {queue: q}\nsteps:\n  - sql: SELECT offset, 1 AS Offset FROM source\n"
            "sinks:\n  - delta: d",
            5,
            "names must differ in more than case",
        ),
        (
            "source: {queue: q}\nsinks:\n  - exchange: e\n    routingKey: concat('a.', custmer)",
            4,
            "there is no column 'custmer'",
        ),
        (
            "source: {queue: q}\nsteps:\n  - sql: SELECT offset AS value FROM source\n"
            "sinks:\n  - queue: e",
            5,
            "the column value is BIGINT, and a body is text or bytes",
        ),
        (
            "source: {queue: q}\nsteps:\n  - sql: SELECT value, offset AS routing_key FROM source\n"
            "sinks:\n  - exchange: e",
            5,
            "column routing_key must be string, not bigint",
        ),
        (
            "source: {queue: q}\nsinks:\n  - console: {rows: 3}",
            3,
            "console has no value, and a mapping would do nothing: write rows beside it",
        ),
        (
            "source:\n  queue: q\n  body:\n    onError: drop\nsinks: [{console: }]",
            4,
            "onError does nothing with the format binary",
        ),
        ("source: {queue: q}\nsinks: [{console: }]\nmode: complete", 3, "for steps that aggregate"),
        (
            "source:\n  queue: q\n  watermark: {column: timestamp, delay: 1 minute}\n"
            "sinks: [{console: }]",
            3,
            "a watermark is for steps that aggregate or join",
        ),
        (
            "source:\n  queue: q\n  watermark: {column: tme, delay: 1 minute}\n"
            "steps: [{sql: SELECT count(*) AS n FROM source}]\nsinks: [{console: }]",
            3,
            "there is no column 'tme' for the watermark",
        ),
        (
            "source:\n  queue: q\n  watermark: {column: offset, delay: 1 minute}\n"
            "steps: [{sql: SELECT count(*) AS n FROM source}]\nsinks: [{console: }]",
            3,
            "the column offset of the watermark is BIGINT, and no TIMESTAMP",
        ),
        ("source: {queue: q}\nsinks:\n  - x", 3, "a sink is a mapping"),
        ("source: {queue: q}\nsinks:\n  - parqet: x", 3, "has no kind: did you mean parquet?"),
        ("source: {queue: q}\nsinks:\n  - {}", 3, "has no kind: exchange, queue, delta"),
        (
            "source: {queue: q}\nsinks:\n  - {parquet: a, delta: b}",
            3,
            "this is delta and parquet at once: make it 2 sinks",
        ),
        (
            "source: {queue: q}\nsinks:\n  - parquet: a\n    compresion: lz4",
            4,
            "unknown key 'compresion' in a sink of the kind parquet: did you mean compression?",
        ),
        (
            "source: {queue: q}\nsinks:\n  - parquet: a\n    compression: zip",
            4,
            "there is no compression 'zip'",
        ),
        ("source: {queue: q}\nsinks:\n  - parquet: s3://x/y", 3, "a path that this machine sees"),
        (
            "source: {queue: q}\nsinks:\n  - {console: , rows: 0}",
            3,
            "rows must be a whole number of at least 1, not 0",
        ),
        ("source: {queue: q}\nsinks:\n  - console:\n    where: a >", 4, "this is no SQL"),
        ("source: {queue: q}\nsinks:\n  - console:\n    from: sorce", 4, "did you mean source?"),
        (
            "source: {queue: q}\nsinks: [{console: , name: a}, {console: , name: a}]",
            2,
            "there are two sinks of the name a",
        ),
        (
            "source: {queue: q}\nsinks:\n  - exchange: e\n    delivery: exactly-onec",
            4,
            "the option delivery must be exactly-once",
        ),
        (
            "source: {queue: q}\nsinks:\n  - queue: e\n    url: http://x",
            4,
            "the option url",
        ),
        (
            "source: {queue: q}\nsinks:\n  - queue: e\n    options:\n      persistant: true",
            5,
            "unknown option 'persistant': did you mean persistent?",
        ),
        (
            "source: {queue: q}\nsinks:\n  - queue: e\n    options:\n      maxInFlight: 0",
            5,
            "the option maxInFlight must be",
        ),
        (
            "source: {queue: q}\nsinks:\n  - queue: e\n    options: {txnAppId: a}",
            4,
            "txnAppId is set by the pipeline",
        ),
        (
            "source: {queue: q}\nsinks:\n  - queue: e\n    options: {routingKey: a}",
            4,
            "routingKey stands beside exchange",
        ),
        (
            "source: {queue: q}\nsinks:\n  - queue: e\n    mandatory: false\n    deadLetter: d",
            4,
            "the option deadLetter needs mandatory=true",
        ),
        ("source: {queue: q}\nsinks:\n  - queue: e\n    options: x", 4, "must be a mapping"),
        ("source: {queue: q}\nsinks:\n  - exchange: e\n    routingKey: a +", 4, "no SQL"),
        ("source: {queue: q}\nsinks:\n  - queue: e\n    routingKey: a", 4, "unknown key"),
        ("source: {queue: q}\nsinks:\n  - delta: d\n    compactEvery: x", 4, "compactEvery must"),
        ("source: {queue: q}\nsinks:\n  - delta: d\n    partitionBy: {a: b}", 4, "partitionBy"),
        ("source: {queue: q}\nsinks:\n  - delta:\n    name: x", 3, "delta"),
        ("source: {queue: q}\nsinks:\n  - delta: d\n    mode: apend", 4, "did you mean append?"),
        ("source: {queue: q}\nsinks:\n  - delta: d\n    mergeSchema: 1", 4, "true or false"),
        ("source: {queue: q}\nsinks:\n  - delta: d\n    mergSchema: true", 4, "mergeSchema?"),
        ("source: {queue: q}\nsinks:\n  - delta: d\n    catalog: c", 4, "unknown key"),
        ("source: {queue: q}\nsinks:\n  - iceberg: a.b", 3, "iceberg needs a catalog"),
        ("source: {queue: q}\nsinks:\n  - iceberg: a\n    catalog: c", 3, "NAMESPACE.TABLE"),
        (
            "source: {queue: q}\nsinks:\n  - iceberg: a.b\n    catalog: ftp://me:pw@host",
            4,
            "a name of .pyiceberg.yaml, not ftp://***@host",
        ),
        (
            "source: {queue: q}\nsinks:\n  - iceberg: a.b.c\n    catalog: sqlite:///c.db",
            3,
            "a database has no inner namespaces",
        ),
        (
            "source: {queue: q}\nsinks:\n  - iceberg: a.b\n    catalog: c\n    catalogOptions: x",
            5,
            "catalogOptions must be a mapping",
        ),
        (
            "source: {queue: q}\nsinks:\n  - iceberg: a.b\n    catalog: c\n"
            "    partitionBy: ['day(time)']",
            5,
            "no transforms such as day(time): make a column of it in a step",
        ),
        (
            "source: {queue: q}\nsinks:\n  - parquet: lake\n  - delta: ./lake",
            4,
            "the sinks parquet and delta write a Delta table and other Parquet files to",
        ),
        (
            "source: {queue: q, options: {prefetch: 5}}\nsinks: [{console: }]",
            1,
            "write prefetch beside queue, as keys of the source",
        ),
        (
            "source: {queue: q}\nsteps:\n  - sql: SELECT * FROM source LIMIT 5\n"
            "sinks: [{console: }]",
            3,
            "LIMIT counts the rows of all micro-batches",
        ),
        ("source: {queues: [q, 5, [r]]}\nsinks: [{console: }]", 1, "queues must be a text"),
        ("source: {queues: [q, q]}\nsinks: [{console: }]", 1, "names queue 'q' twice"),
        ("source: {queue: q}\nsinks:\n  - console:\n    name: [x]", 4, "name must be"),
        ("source:\n  queue: q\n  body: json", 3, "body is a mapping such as"),
        ("source:\n  queue: q\n  body: {fromat: json}", 3, "did you mean format?"),
        ("source: {queue: q}\nsinks: [{console: }]\nmaster: [a]", 3, "master must be"),
        ("source: {queue: q}\nsinks: [{console: }]\ncheckpoint: 's3://b/c'", 3, "this machine"),
        ("source: {queue: q}\nsinks: [{console: }]\nspark: x", 3, "spark must be"),
        ("source: {queue: q}\nsource: {queue: r}\nsinks: [{console: }]", 2, "stands here twice"),
        ("source: {queue: q\nsinks: [{console: }]", 2, "this is no YAML"),
        ("source: {queue: '${NOT_SET}'}\nsinks: [{console: }]", 1, "NOT_SET is not set"),
        ("source: {queue: q}\nsinks: [{console: }]\ntrigger: 5x", 3, "the trigger '5x' is wrong"),
        ("source: {queue: q}\nsinks: [{console: }]\nmode: all", 3, "the mode is one of append"),
        ("source: {queue: q}\nsinks: [{console: }]\nspark: {a: 1}", 3, "is no setting of Spark"),
        ("source: {queue: q}\nsinks: [{console: }]\ncheckpont: a", 3, "did you mean checkpoint?"),
        (
            "source:\n  queue: q\n"
            "  body: {format: text, onError: dead-letter, deadLetter: {queue: b}}\n"
            "steps:\n  - sql: SELECT count(*) AS n FROM source\nsinks: [{console: }]",
            5,
            "because bad rows go to a dead-letter exchange: use onError: drop, or fail",
        ),
        (
            "sources: {a: {queue: q}, b: {queue: r}}\n"
            "sinks: [{console: , from: a}, {console: , from: b}]",
            1,
            "more than one source can only be read as streams",
        ),
    ],
)
def test_every_mistake_is_told_with_its_line(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    with pytest.raises(DescriptionError) as error:
        described(tmp_path, text)
    wanted = [each for each in error.value.complaints if said in each.text]
    assert wanted, str(error.value)
    assert wanted[0].line == line


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError) as error:
        described(tmp_path, "source: {quue: q}\nsinks: [{parqet: x}]\ntriger: now\n")
    lines = str(error.value).splitlines()
    assert len(lines) == 3
    assert all(line.startswith(f"{tmp_path / 'p.yaml'}:") for line in lines)


def test_every_option_that_is_wrong_is_told(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError) as error:
        described(
            tmp_path,
            "source:\n  queue: q\n  longPollMs: x\n  prefech: 1\nsteps:\n"
            "  - sql: SELECT valeu, lenth(valeu) AS n, headers.x.y FROM source WHERE ofset > 1\n"
            "sinks:\n  - queue: e\n    where: m = 1 OR k = 2\n"
            "    options: {maxInFlight: 0, persistant: true}\nmode: update\n",
        )
    assert [each.line for each in error.value.complaints] == [3, 4, 6, 9, 9, 10, 10, 11]


def test_nothing_is_wrong_with_what_a_step_in_python_may_have_made(tmp_path: Path) -> None:
    text = """
source: {queue: q}
steps:
  - python: my_steps:enrich
  - sql: SELECT any_column.any_field, function_of_the_step(x) AS y FROM step1 WHERE z > 1
sinks:
  - delta: d
    partitionBy: [y]
    where: y > 1 AND function_of_the_step(y)
"""
    assert described(tmp_path, text).sinks[0].partition_by == ("y",)


def test_no_complaint_shows_a_password(tmp_path: Path) -> None:
    text = "source:\n  queue: q\n  url: amqp://me:s3cret@host:99999/\nsinks: [{console: }]\n"
    with pytest.raises(DescriptionError) as error:
        described(tmp_path, text)
    assert "s3cret" not in str(error.value)
    assert error.value.complaints[0].line == 3


@pytest.mark.parametrize("name", ["flights", "flights_weather"])
def test_the_examples_have_nothing_wrong_with_them(tmp_path: Path, name: str) -> None:
    file = Path(__file__).parents[3] / "examples" / f"{name}.yaml"
    found = check(file, {"LAKE": str(tmp_path)})
    assert found.name.startswith("flights")
    assert found.sinks[0].target.startswith(str(tmp_path))


def test_the_example_of_a_work_queue_has_nothing_wrong_with_it(tmp_path: Path) -> None:
    file = Path(__file__).parents[3] / "examples" / "queue_to_delta.yaml"
    (sink,) = check(file, {"LAKE": str(tmp_path)}).sinks
    assert (sink.kind, sink.target) == ("delta", f"{tmp_path}/orders")
