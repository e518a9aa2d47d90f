"""Configs: resources, values, validation, changes, descriptions."""
