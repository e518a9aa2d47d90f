"""What is installed, and how it is run: distributions and the systemd unit."""
