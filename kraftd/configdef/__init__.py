"""Kafka's config definitions: which keys there are, of what types, with which defaults and valid values.

``facts.py`` is generated from Kafka's own classes; ``definition.py`` gives the facts their meaning;
``node.py`` is a node's static configuration seen through them; ``properties.py`` reads Java's format of
files. ``kraftd/controller/`` applies configs of resources, ``kraftd/config/`` those of the daemon.
"""
