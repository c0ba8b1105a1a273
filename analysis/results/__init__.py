"""Tables of results: what a sweep writes, seals, merges and reads back, and the frames made of them."""
