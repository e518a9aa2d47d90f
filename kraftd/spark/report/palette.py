"""A colour for each thing that the report counts, the same in every plot and table.

Each is legible on white and on black. Two colours of one hue belong together: what was set and what was
deleted.
"""

from __future__ import annotations

ACTIONS = {
    "create topic": "#2f7ed8",
    "delete topic": "#8fbdf0",
    "add partition": "#0d8f8f",
    "reassign partition": "#7a52cc",
    "cancel reassignment": "#b9a3ea",
    "set config": "#e67700",
    "delete config": "#f2b366",
    "create ACL": "#2b8a3e",
    "delete ACL": "#86cf95",
    "set quota": "#b8860b",
    "delete quota": "#dfc36a",
    "set SCRAM credential": "#c2255c",
    "delete SCRAM credential": "#ee8fb0",
    "set delegation token": "#a0522d",
    "delete delegation token": "#d6a184",
    "set feature": "#868e96",
    "unregister broker": "#e03131",
}
CAUSES = {
    "broker fenced": "#e67700",
    "broker unregistered": "#a0522d",
    "broker unfenced": "#0d8f8f",
    "controlled shutdown": "#2f7ed8",
    "unclean shutdown": "#c2255c",
    "unclean election": "#e03131",
    "log directory failed": "#b8860b",
    "leader lost": "#ee8fb0",
    "reassignment": "#7a52cc",
    "preferred election": "#2b8a3e",
    "election": "#868e96",
}
KINDS = {
    "offline": "#e03131",
    "leaderless": "#7a52cc",
    "under_min_isr": "#e67700",
    "under_replicated": "#2f7ed8",
}
PLAIN = "#2f7ed8"
"""The colour of what stands alone."""
