"""P1: Distribution-calibrated inference-time compute for thinking LLM-as-a-judge."""
