"""What a replica does now and then: snapshots, retention, its high watermark on disk, checks of its files."""
