"""The verbs of `harebell`, one per file. The nouns, such as `queues`, are commands of `admin`."""
