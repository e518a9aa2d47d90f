"""SCRAM credentials of users: changes and descriptions (KIP-554).

Public: `alter.alter_user_scram_credentials` and `describe.describe_user_scram_credentials`, one decision
each.
"""
