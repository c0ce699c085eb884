"""What moving adds: the commands that import and export."""

from runtime.plug_ins import PlugIn

PLUG_IN = PlugIn(
    commands={
        "import": ("moving.commands:commands", "Import the schedules of other schedulers."),
        "export": ("moving.commands:export", "Print actions for another scheduler."),
    },
)
