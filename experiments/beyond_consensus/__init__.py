"""P4: beyond consensus, generator precision from biased judges."""
