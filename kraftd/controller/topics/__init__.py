"""Topics: creation, deletion and more partitions (KIP-464, KIP-516, KIP-525, KIP-195).

Public: `create_topics`, `delete_topics` and `create_partitions`, a decision of that name in each. `placement`
chooses the replicas of new partitions and `assignment` checks manual ones; `names` has the rules of topic
names, and NameTest, by which callers pass what the sender may see.
"""
