"""What the data product adds: tables, steps, documents, templates and rows, in each door."""

from runtime.plug_ins import Branch, PlugIn

PLUG_IN = PlugIn(
    tables=("data.store.tables",),
    branch=Branch("data", "data.migrations", "0001_pre_first_release"),
    settings=("data.settings:Settings",),
    named_settings=("connections",),
    steps=("data.steps",),
    extras={"data": ("duckdb", "fsspec"), "mail": ("matplotlib",)},
    commands={"template": ("data.commands.templates:commands", "Mail templates of a small app.")},
    demo=("data.demo:load",),
    subcommands={"app": ("data.commands.apps",)},
    endpoints=("data.endpoints:router", "data.endpoints:public"),
    mounts=("data.endpoints:mount",),
    pages=("data.pages:router",),
    apps_page=("data.pages:statuses_of",),
    app_page=("data.pages:shown_of",),
    app_live=("data.pages:live",),
    app_document=("data.small_app.document:DataModel",),
    app_checks=("data.mail.checks:template_problems",),
    app_allowed=("data.small_app.allowed:problems_of_sources",),
    app_warnings=("data.small_app.allowed:app_warnings",),
    app_stored=("data.store.small_apps:store",),
    app_names=("data.store.small_apps:names_in",),
    app_shown=("data.views.status:shown",),
    app_lines=("data.texts:lines_of_app",),
    mailed=("data.store.readers:mailed",),
    mails=("data.store.small_apps:mails_of_steps",),
    gauges=("data.measures:REFRESHED", "data.measures:PUBLISHED"),
    counted=("data.measures:DELIVERIES",),
    pruning=("data.pruning:prune",),
)
