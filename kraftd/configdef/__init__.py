"""Kafka's config definitions: which keys there are, of what types, with which defaults and valid values.

``facts.py`` is generated from Kafka's own classes; ``definition.py`` gives the facts their meaning;
``node.py`` is a node's static configuration seen through them; ``properties.py`` reads Java's format of
files. What a resource's config means to the cluster is left to ``kraftd/controller/``, what the daemon
does with its own to ``kraftd/config/``.
"""
