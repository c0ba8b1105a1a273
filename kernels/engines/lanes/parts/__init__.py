"""Parts that every form of kernel emits: the draws of a step, what a step may change, the rows that runs leave."""
