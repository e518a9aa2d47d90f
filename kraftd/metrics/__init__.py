"""Numbers that the packages keep, as an HTTP listener shows them: Prometheus text, /healthz and /readyz."""
