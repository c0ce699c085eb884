"""Text without characters that hide, move or reverse what a person reads."""

import json
import re

# Characters that move the cursor, hide text or reverse it.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u180e\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f"
)
_HIDDEN = re.compile(f"[{_UNSAFE}]")
_HIDDEN_OR_BREAK = re.compile(f"[{_UNSAFE}\n]")


def visible_json(text: str) -> str:
    """Return the same JSON without raw control characters."""
    return _HIDDEN.sub(lambda found: json.dumps(found[0])[1:-1], text)


def visible(text: str) -> str:
    r"""Return text that is safe for a terminal: control characters are escaped, as `\x1b`.

    Line breaks and tabs stay, and so do the marks of right-to-left scripts.
    """
    return _HIDDEN.sub(_written, text)


def visible_line(text: str) -> str:
    r"""Return text as `visible` does, in one line: a line break is escaped too, as `\n`."""
    return _HIDDEN_OR_BREAK.sub(_written, text)


def _written(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] == "\n":
        return "\\n"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
