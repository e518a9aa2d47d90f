"""The status page: the data of a moment, what is wrong in words, and the page that shows it."""
