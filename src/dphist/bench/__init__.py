"""Measurements that anyone can rerun: ``python -m dphist.bench NAME``."""
