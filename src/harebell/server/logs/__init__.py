"""The log of a broker.

    published_log.py   where the broker writes lines; the log exchange gets them, too
    recent.py          the last lines, for the HTTP API
    logger.py          levels, and a thread that writes lines to the outputs
    formats.py         lines as text or JSON
    outputs.py         the console and files; system.py: syslog and systemd's journal

Keys of the configuration begin with `log_`.
"""
