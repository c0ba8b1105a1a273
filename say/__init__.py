"""Words and numbers that people read: how figures, times, rates and settings are said. Knows tables, and no kernel."""
