"""`kraftd-spark report`: one page about a cluster's history, with plots, that needs nothing else to be
read."""
