"""The default template of the "new data available" mail."""

from small_apps.mail.templates import MailTemplate
from small_apps.mail.values import NEW_DATA

DEFAULT = MailTemplate(
    NEW_DATA,
    subject="{{ small_app.title }}: new data available",
    text="""Hello {{ recipient.name }},

there is something new in {{ small_app.title }}, published on {{ date }} at {{ time }} \
({{ small_app.zone }}):

{% for domain in domains %}- {{ domain.name }}: {{ domain.rows }} \
row{% if domain.rows != 1 %}s{% endif %}
{% endfor %}{% if design %}- design: {{ design|join(", ") }}
{% endif %}{% if permissions %}- permissions: {{ permissions|join(", ") }}
{% endif %}{% if unsubscribe_url %}
To get no more of these: {{ unsubscribe_url }}
{% endif %}""",
    html="""<p>Hello {{ recipient.name }},</p>
<p>there is something new in <b>{{ small_app.title }}</b>, published on {{ date }} at {{ time }} \
({{ small_app.zone }}):</p>
<ul>
{% for domain in domains %}<li>{{ domain.name }}: {{ domain.rows }} \
row{% if domain.rows != 1 %}s{% endif %}</li>
{% endfor %}{% if design %}<li>design: {{ design|join(", ") }}</li>
{% endif %}{% if permissions %}<li>permissions: {{ permissions|join(", ") }}</li>
{% endif %}</ul>
{% if unsubscribe_url %}<p><a href="{{ unsubscribe_url }}">To get no more of these</a></p>
{% endif %}""",
)
