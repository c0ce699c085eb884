"""The executive summary as text and as HTML that is read on a phone: one column, no images."""

from datetime import datetime

from jinja2 import Environment, StrictUndefined

from small_apps.summary import DomainSummary, Summary, age

SMALLEST_SHOWN = 0.005

_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ summary.title }}</title></head>
<body style="margin:0;padding:16px;background:#f2f4f7;color:#1d2733;\
font:16px/1.45 -apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif">
<div style="max-width:560px;margin:0 auto">
<h1 style="margin:0 0 4px;font-size:22px">{{ summary.title }}</h1>
<p style="margin:0 0 16px;color:#5b6875;font-size:14px">{{ summary.local_time }}</p>
{% for part in summary.domains %}
<div style="margin:0 0 12px;padding:16px;background:#fff;border-radius:10px;\
border:1px solid #e1e6ec">
<div style="font-size:14px;color:#5b6875">{{ part.name }}</div>
{% if part.row_count is none %}
<div style="margin:4px 0;font-size:18px">nothing published yet</div>
{% else %}
<div style="margin:2px 0 4px"><span style="font-size:28px;font-weight:600">\
{{ part.row_count|number }}</span> rows
{% if part.change is not none %}<span style="padding:2px 8px;border-radius:9px;font-size:14px;\
{{ part.change|tint }}">{{ part.change|change }}</span>{% endif %}</div>
<div style="font-size:14px;color:#5b6875">{{ part|freshness(summary.now) }}</div>
{% endif %}
{% if part.figures %}
<table role="presentation" style="width:100%;margin-top:10px;border-collapse:collapse;\
font-size:15px">
{% for figure in part.figures %}
<tr><td style="padding:8px 8px 8px 0;border-top:1px solid #edf0f4;word-break:break-word">\
{{ figure.column }}
<div style="font-size:13px;color:#5b6875">{{ figure.least|number }} to {{ figure.most|number }}, \
mean {{ figure.mean|number }}</div></td>
<td style="padding:8px 0;border-top:1px solid #edf0f4;text-align:right;vertical-align:top;\
white-space:nowrap"><b>{{ figure.total|number }}</b>
{% if figure.change is not none %}<div style="font-size:13px;color:#5b6875">\
{{ figure.change|change }}</div>{% endif %}</td></tr>
{% endfor %}
</table>
{% endif %}
</div>
{% endfor %}
{% if not summary.domains %}<p>This small app has no domains.</p>{% endif %}
</div></body></html>
"""

_TEXT = """\
{{ summary.title }}
{{ summary.local_time }}
{% for part in summary.domains %}

{{ part.name }}
{% if part.row_count is none %}
  nothing published yet
{% else %}
  {{ part.row_count|number }} rows\
{% if part.change is not none %} ({{ part.change|change }}){% endif %}

  {{ part|freshness(summary.now) }}
{% endif %}
{% for figure in part.figures %}
  {{ figure.column }}: {{ figure.total|number }}\
{% if figure.change is not none %} ({{ figure.change|change }}){% endif %}, \
from {{ figure.least|number }} to {{ figure.most|number }}, mean {{ figure.mean|number }}
{% endfor %}
{% else %}

This small app has no domains.
{% endfor %}
"""


def render_text(summary: Summary) -> str:
    """Return the summary as plain text."""
    return _environment(escapes=False).from_string(_TEXT).render(summary=summary)


def render_html(summary: Summary) -> str:
    """Return the summary as one HTML page, every value escaped."""
    return _environment(escapes=True).from_string(_PAGE).render(summary=summary)


def shown_number(value: float) -> str:
    """Return `value` for people: thousands apart, at most two digits after the point."""
    if abs(value - round(value)) < SMALLEST_SHOWN:
        return f"{round(value):,}"
    return f"{value:,.2f}"


def shown_change(value: float) -> str:
    """Return a change since the last summary: `+120`, `−3.50`, `no change`."""
    if abs(value) < SMALLEST_SHOWN:
        return "no change"
    return f"{'+' if value > 0 else '−'}{shown_number(abs(value))}"  # noqa: RUF001


def _tint(value: float) -> str:
    if value > 0:
        return "background:#e3f5e8;color:#17663a"
    return "background:#fdeaea;color:#8f2424" if value < 0 else "background:#edf0f4;color:#5b6875"


def _freshness(part: DomainSummary, now: datetime) -> str:
    data = f"data of {age(part.data_at, now)}" if part.data_at else ""
    checked = f", checked {age(part.checked_at, now)}" if part.checked_at else ""
    return data + checked


def _environment(*, escapes: bool) -> Environment:
    made = Environment(
        autoescape=escapes,  # noqa: S701 - plain text has nothing to escape
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": shown_number,
        "change": shown_change,
        "tint": _tint,
        "freshness": _freshness,
    }
    return made
