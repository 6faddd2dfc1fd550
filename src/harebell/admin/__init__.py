"""Administration: what operators ask a running broker to do."""
