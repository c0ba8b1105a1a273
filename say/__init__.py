"""Words and numbers that people read: figures, times, rates and settings. Knows tables, and no kernel."""
