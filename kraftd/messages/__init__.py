"""Kafka's messages: one module each, with its Structs and its field table.

Generated from ``schemas/`` by ``python -m codegen.generate``; do not edit.  Nothing is imported
here: a module is loaded when its message is first needed.
"""
