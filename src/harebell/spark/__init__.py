"""Queues as a Spark source and sink: `spark.readStream.format("harebell")`.

    source.py              the data source that Spark registers; schema.py has its columns
    options/               parse the options of both directions
    reading/               the source: queues and streams become rows
    writing/               the sink: rows become messages
    session.py             a session with fitting defaults; runtime/ is what it needs to start
    catalog.py             queues as tables of a catalog
    lag.py, reporting.py   how far queries are, as metrics and for the broker
    outages.py             say once that a broker is away, and once that it is back
    connection_limits.py   wait where a limit allows no more connections
    limits.py              the limits of all of these
    task_process.py        the Python process that runs tasks: its memory
    plain_errors.py        errors without tracebacks; failure_sentences.py: those of Spark, too

`docs/guides/spark.md` is the page for users.
"""
