"""What a daemon reports of itself: its log, the audit stream, times of the event loop, metrics over HTTP."""
