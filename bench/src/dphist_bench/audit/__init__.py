"""Attacks on every claim at once: the campaign over all mechanisms, its page, and what would have been caught."""
