"""The daemon's configuration: Kafka's own controller ``.properties`` files, read unchanged into a
``DaemonConfig``.

What the keys mean in Kafka is in ``kraftd/configdef/``; ``daemon.py`` holds what kraftd makes of them,
``load.py`` reads a file and says what is wrong with it, ``unknown.py`` finds the key that was probably meant.
"""

from kraftd.config.daemon import DaemonConfig
from kraftd.config.errors import ConfigError
from kraftd.config.load import load

__all__ = ["ConfigError", "DaemonConfig", "load"]
