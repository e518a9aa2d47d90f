"""The commands that show a cluster's metadata: `topics`, `show`, `diff`, `history`, `watch`.

`replaying` makes the image that they read, out of the records of a source.
"""
