"""What goes wrong because of what a person asked for."""


class ConfigError(ValueError):
    """Input that cannot be used; the text is one line naming file, key, value and what is allowed."""
