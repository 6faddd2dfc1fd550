"""What the documentation shows and no test executes, each with its reason, and what needs Spark.

Keep it short: a command belongs here only if running it inside a test makes no sense.
"""

from __future__ import annotations

REASONS = {
    r'make( [a-z-]+)+( FLAGS=".*")?': "runs these tests, among others; the targets are checked",
    r"git clone .*": "needs a network",
    r"(sudo )?apt-get .*": "changes the machine",
    r"harebell cluster (status|drain|move .*)": "needs several brokers over PostgreSQL",
    r"harebell store (copy|check) .*postgresql:.*": "needs a PostgreSQL server",
    r"harebell (spark doctor --checkpoint|publishers hand-over|store split) .*": (
        "needs a query that has run, or a broker that has ended"
    ),
    r"pip install .*": "changes the environment that runs the tests",
}
"""Patterns of whole commands."""

ON_SPARK = (
    "README.md",
    "docs/guides/lake.md",
    "docs/guides/pipelines.md",
    "docs/guides/spark.md",
    "docs/guides/sql.md",
    "docs/tutorials/stream-to-lake.md",
)
"""Files whose examples start Spark, which wants most of the machine for itself."""

UNRUN_FILES: dict[str, str] = {
    "docs/ARCHITECTURE.md": "its blocks are pictures",
}
"""Files whose Python blocks are not executed."""
