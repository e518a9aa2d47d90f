"""What a controller notices and reports: changes for the audit, and replicas that are not as expected."""
