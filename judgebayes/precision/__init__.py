"""Generator precision: how many of a generator's items are valid, from biased judges."""
