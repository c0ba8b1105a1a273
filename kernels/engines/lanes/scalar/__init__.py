"""One run after another, a branch to what was drawn: for large models, and processors without wide registers."""
