"""`kraftd-spark report`: one HTML page about a cluster's history, with plots, which needs no other file.

Public: `page.make_page`. `figures` computes the numbers from a timeline, `plots` draws
them as SVG in the colours of `palette`.
"""
