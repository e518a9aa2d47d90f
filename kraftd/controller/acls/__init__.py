"""ACLs: creation, deletion and description, with Kafka's filters (KIP-290).

Public: `create.create_acls`, `delete.delete_acls` and `describe.describe_acls`, one decision each; `filters`
has AclFilter, which the last two share.
"""
