"""Features: finalized levels (KIP-584, KIP-778), and controllers that register what they support (KIP-919).

Public: `update.update_features` and `controllers.register_controller`, one decision each. `downgrade` names
the metadata that a lower metadata.version cannot express.
"""
