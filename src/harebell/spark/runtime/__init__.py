"""Start Spark: Java, the session, and the files for executors."""
