"""Characters that word processors and web pages put into rules."""

import re
import unicodedata

_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-")
_STARS = dict.fromkeys(map(ord, "\u2217\uff0a\u2731\u204e\u22c6\u2022"), "*")
_QUOTES = dict.fromkeys(map(ord, "\u201c\u201d\u201e\u2018\u2019\u201a"), '"')
_UNSEEN = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f"))
_LIKE = _DASHES | _STARS | _QUOTES | _UNSEEN


def in_ascii(text: str) -> str | None:
    """Return a text with the plain characters that it stands for; None if one is not known."""
    plain = unicodedata.normalize("NFKC", text.translate(_LIKE)).translate(_LIKE)
    plain = " ".join(re.sub(r"\s", " ", plain).split())
    return plain if plain.isascii() and plain.isprintable() else None
