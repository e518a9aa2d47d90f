"""Configs of topics, brokers, groups and client metrics: changes, validation and description (KIP-226,
KIP-339).

Public: `changes` (AlterConfigs, IncrementalAlterConfigs and the configs of new topics), `description`
(DescribeConfigs), and for other decisions `values`, the effective configs. `dynamic` has this node's own
configs in force; `validation`, `elr` and `cordoned` have the rules of single keys.
"""
