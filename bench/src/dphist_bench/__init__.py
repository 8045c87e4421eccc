"""Measurements that anyone can rerun: ``dphist bench run NAME``."""
