"""A protocol's functions as expressions in which the parameters of one configuration are constants."""
