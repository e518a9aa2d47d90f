"""``python -m bench.hostile``: three controllers under hostile load, kraftd beside Apache Kafka.

`rows` are the attacks, which run in a process of their own. Meanwhile `others` measures in another process
what peers, brokers and administrators notice. `quorum` starts the nodes, which have a listener of TLS too.
"""
