"""What the data product adds: steps, templates and rows, in each door."""

from runtime.plug_ins import PlugIn

PLUG_IN = PlugIn(
    steps=("data.steps",),
    commands={"template": ("data.commands.templates:commands", "Mail templates of a small app.")},
    subcommands={"app": ("data.commands.apps",)},
    endpoints=("data.endpoints:router",),
    pages=("data.pages:router",),
    app_page=("data.pages:templates_of",),
    app_checks=("data.mail.checks:template_problems",),
    pruning=("data.pruning:prune",),
)
