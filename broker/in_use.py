"""The settings that this process sends with; no broker library is loaded."""

from runtime.config import Settings, load_settings

_settings: list[Settings] = []


def use(settings: Settings) -> None:
    """Send with these settings from now on."""
    _settings[:] = [settings]


def settings_in_use() -> Settings:
    """Return the settings given to `use`, else those of the environment."""
    if not _settings:
        use(load_settings())
    return _settings[0]
