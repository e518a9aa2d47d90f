"""The commands on a node's directories: `format`, `dump`, `snapshot`, `backup`, `restore`."""
