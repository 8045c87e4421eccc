"""Measurements that anyone can rerun: ``python -m dphist_bench NAME``."""
