"""Noise that is a linear map of independent draws, each kind of map in a file: what mechanisms hand to a release."""
