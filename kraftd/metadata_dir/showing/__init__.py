"""What is in a directory, as rows and histories; nothing is changed."""
