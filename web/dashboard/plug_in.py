"""What the dashboard adds to the application: its pages, and errors that people read."""

from runtime.plug_ins import PlugIn

PLUG_IN = PlugIn(signs_in=True, mounts=("web.dashboard.mounting:mount",))
