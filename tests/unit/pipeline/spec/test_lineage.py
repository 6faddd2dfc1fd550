"""The drawing of a pipeline: valid XML, all nodes and edges, whatever names it has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from harebell.pipeline.spec.description import Description, Sink, Source, Step, Trigger
from harebell.pipeline.spec.lineage import Node, drawing, nodes

SVG = "{http://www.w3.org/2000/svg}"
PIPELINE = Description(
    name="sales",
    file=None,
    directory=Path("/p"),
    sources=(Source("orders", {"queue": "orders"}), Source("people", {"superStream": "people"})),
    steps=(
        Step("joined", sql="SELECT *\nFROM orders JOIN people USING (id)"),
        Step("priced", python="prices:add", source="joined"),
    ),
    sinks=(
        Sink("big", "exchange", "priced", "big"),
        Sink("lake", "delta", "joined", "lake/sales"),
    ),
    trigger=Trigger(),
    checkpoint=Path("/p/c"),
)


def test_sources_steps_and_sinks_are_nodes_with_the_views_that_they_read() -> None:
    assert nodes(PIPELINE) == [
        Node("source", "orders", "queue orders"),
        Node("source", "people", "superStream people"),
        Node("step", "joined", "SELECT * FROM orders JOIN people USING (id)", ("orders", "people")),
        Node("step", "priced", "calls prices:add", ("joined",)),
        Node("sink", "big", "exchange big", ("priced",)),
        Node("sink", "lake", "delta lake/sales", ("joined",)),
    ]


def test_the_drawing_has_a_box_for_each_node_and_a_line_for_each_view_that_is_read() -> None:
    root = ElementTree.fromstring(drawing(PIPELINE))
    boxes = [
        tuple(int(each.get(name, "")) for name in ("x", "y")) for each in root.iter(f"{SVG}rect")
    ]
    assert len(boxes) == len(set(boxes)) == 6
    # From left to right: sources, the join, the Python step, the sinks.
    assert [x for x, _ in boxes] == sorted(x for x, _ in boxes)
    lines = [each for each in root.iter(f"{SVG}path") if each.get("marker-end")]
    assert len(lines) == 5


def test_names_cannot_leave_their_texts_nor_make_the_file_invalid() -> None:
    name = "</text><script>alert('&')</script>\x00\x1b[31m\ud800"
    hostile = replace(
        PIPELINE,
        name=name,
        sources=(Source("orders", {"queue": name}),),
        steps=(),
        sinks=(Sink(name, "delta", "orders", name),),
    )
    root = ElementTree.fromstring(drawing(hostile))
    assert not list(root.iter(f"{SVG}script"))
    shown = "".join(root.itertext())
    assert "</text><script>alert('&')</script>\\u0000\\u001b[31m" in shown


def test_a_sink_of_one_queue_is_drawn_as_that_queue_and_wide_letters_stay_in_their_box() -> None:
    keys = {"routingKeyExpression": "'it\\'s'"}
    to_queue = replace(PIPELINE, sinks=(Sink("one", "exchange", "priced", "", options=keys),))
    assert nodes(to_queue)[-1] == Node("sink", "one", "queue it's", ("priced",))
    by_row = {"routingKeyExpression": "concat('a', id)"}
    other = replace(PIPELINE, sinks=(Sink("one", "exchange", "priced", "", options=by_row),))
    assert nodes(other)[-1].what == "the default exchange"
    wide = replace(PIPELINE, sources=(Source("orders", {"queue": "日" * 40}),))
    texts = [each.text or "" for each in ElementTree.fromstring(drawing(wide)).iter(f"{SVG}text")]
    assert "queue " + "日" * 14 + "…" in texts
