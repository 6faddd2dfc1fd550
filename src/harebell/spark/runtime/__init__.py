"""Start Spark, and what belongs to it on this machine.

    java.py, masters.py     the Java that it runs with, and where its tasks run
    spark_home_cache.py     what makes it start faster; warming.py builds the class-data archive
    startup_lines.py        leave out the lines that it always prints
    jvm_end.py              say that its JVM has ended
    shipping.py             the archive of Harebell for executors
    connect_session.py      Spark Connect; connect_pickle.py: its errors where Harebell is missing
    session_server.py       a resident session of this user; session_server_process.py runs it
    server_retries.py       requests to it, only while it lives
    doctor.py               what `harebell doctor` finds about Spark
    restart.py              what a query will do when it is started again on its checkpoint

`docs/guides/spark-clusters.md` has the masters.
"""
