"""HTTP for a scrape and a page: connections with limits, known hosts, a password, work that is shared."""
