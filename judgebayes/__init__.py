"""judgebayes."""
