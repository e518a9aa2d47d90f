"""Delegation tokens: created, renewed, expired, described and swept (KIP-48, KIP-900).

A token's HMAC is its password. It is in no record: every node computes it from the token id and the cluster's
``delegation.token.secret.key``. Public: `change` and `describe` have the decisions, `secrets` the HMACs.
"""
