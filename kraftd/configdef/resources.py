"""The numbers of resource types with configs, as records and requests hold them."""

from __future__ import annotations

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32
