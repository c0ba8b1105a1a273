"""A cluster that loses nodes: which of its ledgers lose entries, how often, and how many at once. Knows no protocol."""
