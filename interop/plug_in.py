"""What interop adds: the commands that import and export."""

from runtime.plug_ins import PlugIn

PLUG_IN = PlugIn(
    commands={
        "import": ("interop.commands:commands", "Import the schedules of other schedulers."),
        "export": ("interop.commands:export", "Print actions for another scheduler."),
    },
)
