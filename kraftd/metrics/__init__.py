"""Numbers that the rooms keep, told to whoever watches: a Prometheus endpoint, /healthz and /readyz."""
