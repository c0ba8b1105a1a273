"""The colours of letters and of lines that stay in the background, in figures and diagrams alike."""

INK, FAINT = "#1f2933", "#cbd2d9"
