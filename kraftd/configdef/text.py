"""How Java reads and writes the text of numbers and lists; a config's text must mean the same here as
there.
"""

from __future__ import annotations

import math
import re

# String.trim() drops every character up to the blank, and no other white space.
_TRIMMED = "".join(map(chr, range(33)))
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)", re.ASCII)
_SPECIAL = re.compile(r"[+-]?(?:Infinity|NaN)")
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+", re.ASCII)


def trim(text: str) -> str:
    """``String.trim``."""
    return text.strip(_TRIMMED)


def parse_integer(text: str, bits: int) -> int:
    """``Integer.parseInt`` and its kin: a sign and decimal digits. Raises ValueError, out of range too."""
    if not _INTEGER.fullmatch(text):
        raise ValueError("not an integer")
    value = int(text)
    if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise ValueError(f"does not fit in {bits} bits")
    return value


def parse_double(text: str) -> float:
    """``Double.parseDouble``: decimal or hexadecimal, with an optional type suffix. Raises ValueError."""
    text = trim(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace("Infinity", "inf"))
    bare = text[:-1] if text[-1:] in tuple("fFdD") else text
    if _DECIMAL.fullmatch(bare):
        return float(bare)
    if _HEXADECIMAL.fullmatch(bare):
        try:
            return float.fromhex(bare)
        except OverflowError:
            return -math.inf if bare.startswith("-") else math.inf
    raise ValueError("not a number")


def double_text(value: float) -> str:
    """``Double.toString``: plain between 0.001 and 10,000,000, else with an exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal  # rarely needed, and slow to import

    # Python's shortest digits, written as Java writes them: one digit, a point, at least one more, the
    # exponent.
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    return f"{'-' if sign else ''}{text[0]}.{text[1:] or '0'}E{exponent + len(digits) - 1}"


def parse_list(text: str) -> list[str]:
    """A list as ConfigDef reads it: parts between commas, white space around commas dropped; "" has none."""
    text = trim(text)
    return _COMMA.split(text) if text else []


def split(text: str, separator: str) -> list[str]:
    """``String.split`` by a plain separator: empty parts at the end are dropped, but an empty text has one
    part.
    """
    if not text:
        return [""]
    parts = text.split(separator)
    while parts and not parts[-1]:
        parts.pop()
    return parts


def utf16_length(text: str) -> int:
    """``String.length``: UTF-16 code units."""
    return len(text) + sum(character > "\uffff" for character in text)
