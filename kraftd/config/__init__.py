"""The daemon's configuration: Kafka's own controller ``.properties`` files, read unchanged into a
``DaemonConfig``.

    config = load("controller.properties", overrides=["num.partitions=3"])
    config.num_partitions

A key is one row of ``daemon.py``: its name, the parser of its value, the attribute that it becomes, and what
kraftd does with it. To add a key, add a row to the section where it belongs, and read ``config.<attribute>``:

    delete_topic_enable = flag("delete.topic.enable", "whether topics may be deleted")

That makes the setting, the messages about wrong values and the row in docs/configuration.md, which
``python -m kraftd.config.reference docs/configuration.md`` rewrites. A key that Kafka 4.3 does not have
brings its type, default and rule with ``**own(...)``. Tests refuse a row that nothing reads.

``kraftd/configdef/`` has Kafka's definitions of the keys. ``rows.py`` has the parsers of a row. ``load.py``
reads a file and reports its faults. ``checks.py`` checks keys against each other. ``keys.py`` names the
refused keys, ``unknown.py`` finds the key that was probably meant.
"""

from kraftd.config.daemon import DaemonConfig
from kraftd.config.errors import ConfigError
from kraftd.config.load import load

__all__ = ["ConfigError", "DaemonConfig", "load"]
