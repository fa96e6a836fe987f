"""Simulation-based calibration: do the samplers draw from the posterior that their models state?"""
