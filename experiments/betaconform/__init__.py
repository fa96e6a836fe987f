"""P3: Efficient MAP estimation of LLM judgment performance with prior transfer (BetaConform)."""
