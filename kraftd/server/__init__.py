"""One file an API, and the node that joins the pure rooms."""
