"""P2: Calibrate, don't curate: label-efficient estimation from noisy LLM judges."""
