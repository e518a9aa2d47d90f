"""`kraftd-spark report`: one HTML page about a cluster's history, with plots, which needs no other file.

Public: `page.make_page`. `written_tables` reads the tables that a page is made of, whichever way they were
written. `figures` computes the numbers with Arrow, `plots` draws them as SVG in the colours of `palette`.
"""
