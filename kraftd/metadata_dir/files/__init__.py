"""The files of a metadata directory, one format a module, and which of them a directory has."""
