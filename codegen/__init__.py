"""Kafka's message schemas, and the Python that is generated from them.

``codegen.extract`` takes the facts of the schemas out of Apache Kafka's jars into ``schemas/``;
``codegen.generate`` turns ``schemas/`` into ``kraftd/messages/``.  Neither imports anything of
kraftd, and kraftd nothing of them.
"""
