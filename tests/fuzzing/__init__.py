"""Fuzz targets of the C extensions, run with sanitizers: ``make fuzz``."""
