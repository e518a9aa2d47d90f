"""Client quotas: changes and descriptions (KIP-546, KIP-612), and the controller mutation quota (KIP-599).

Public: `alter.alter_client_quotas` and `describe.describe_client_quotas`, one decision each; `mutation`
charges requests that create or delete partitions. `entities` has the valid entities and values, `limits` says
which quota a client has.
"""
