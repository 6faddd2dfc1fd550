"""Write rows to the broker: at least once, or exactly once.

    sink.py              Spark's calls, on the driver and in tasks
    sink_schema.py       the columns of a data frame that become messages
    write_target.py      where rows go, which task writes them, and what it did
    bad_rows.py          rows that cannot become messages; advice.py: what their errors advise
    staged.py            exactly once: rows are staged by tasks, and committed by the driver
    confirmed.py         at least once: rows are published with confirms
    reconnecting.py      go on after a lost connection
    super_stream.py      which partition of a super stream a row goes to

`docs/guides/spark-sink.md` is the page for users.
"""
