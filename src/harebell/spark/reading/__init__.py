"""Read queues: the calls of Spark, and the ways to read a queue.

    stream_source.py       Spark's calls of a streaming query, and what their answers guarantee
      query.py             what they mean for all queues; trigger_delay.py holds a micro-batch back
      reader_factory.py    the readers of a query; queue_lookup.py: which queues there are
      strategies.py        which class reads a queue: the table
      queue_reader.py      what each way provides, for the driver
        leased/            Harebell, exactly once: claims of a lease
        positions/         Harebell: streams, and queues that are not consumed
        spooled/           any broker: a consumer on the driver, and files for the executors
      offsets.py           what is in Spark's checkpoint; checkpoint.py: its files
      planning.py          ranges become partitions
    batch_source.py        a batch read, which consumes nothing
    refused_reader.py      the reader of a query that cannot begin
    rows/                  in a task: the rows of a partition, and their columns
    broker_connection.py   the connection of all of these
    errors.py              how a query ends; data_loss_policy.py: if messages are missing

`docs/guides/spark.md` is the page for users.
"""
