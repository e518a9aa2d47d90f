"""The installed files and how they run: distributions and the systemd unit."""
