"""Choice of the design to run: what it costs in latency, and what would change the answer."""
