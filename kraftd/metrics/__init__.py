"""Serves the packages' numbers over HTTP: Prometheus text, a status page, /healthz and /readyz.

    exposition = Exposition(readings, accept)  # the state of the packages; the Accept header
    for piece in exposition.pieces(): ...      # the text, in pieces between which other work may run

A metric is a line in one of `*_metrics.py`: a `Family` or `Bean` with name, meaning and reader. No other
package knows Prometheus: they keep plain numbers. `survey` counts partitions in slices, `status` and `pages`
make the pages, `http` is the server's protocol. docs/metrics.md lists all metrics.
"""
