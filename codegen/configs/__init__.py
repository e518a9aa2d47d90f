"""Kafka's config definitions: extracted from its jars into ``schemas/configs/``, generated into
``kraftd/configdef/``.
"""
