"""Simulation-based calibration: tests that samplers draw from the posteriors of their models."""
