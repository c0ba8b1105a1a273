"""Code specialized for one configuration: `lanes` makes it for CPUs, `gpu` for GPUs, and both begin alike.

`traced` traces the model with the configuration's parameters and rates and folds what is fixed. `plan` says how a run
lies in lanes: how wide they are, where masks of enabled instances lie side by side, and what a row tells.
`by_configuration` keeps what was made.
"""
