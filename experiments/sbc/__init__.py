"""Simulation-based calibration: do samplers draw from the posterior that their models state."""
