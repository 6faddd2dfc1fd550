"""Start Spark: Java, the session, and what executors need."""
