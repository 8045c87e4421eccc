"""Publish histograms and data cubes with differential privacy."""
