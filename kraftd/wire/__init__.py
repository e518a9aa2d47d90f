"""The wire: primitive types, codecs, frames, record batches."""
