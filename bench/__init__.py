"""Benchmarks: what a broker and the data pipeline cost, measured from outside.

Programs, each with `--help` or with its arguments at the top of the file:

    python -m bench                brokers: scenarios.py, measure.py for one run, report.py
    python -m bench.bulk           bulk reads without Spark
    python -m bench.fairness       what one user costs the others: pair.py beside a load of hostile/
    python -m bench.postgresql     storage in PostgreSQL; postgresql_commits.py is PostgreSQL alone
    python -m bench.scraping       a scrape of the metrics
    python -m bench.workers        two busy vhosts with one worker and with two
    python -m bench.spark          Spark: pipeline.py has the rows, queries.py what is timed in each

What they share:

    brokers.py, process.py         the brokers, and the CPU time and memory of their processes
    load.py, load010.py, load1.py  the two ends of a scenario, over peer.py, peer010.py, peer1.py
    frames.py, filling.py          encoded publishes, and queues filled with them
    disk.py, synthetic.py          the ceilings: a disk, and Spark with rows from memory
    parquet_loop.py                what people do without Spark
    backlog.py, drawing.py         a large backlog, and the picture of the results

Brokers run in processes of their own. docs/reference/benchmarks.md says what is measured and how
to read it.
"""
