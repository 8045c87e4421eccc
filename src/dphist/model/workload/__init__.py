"""What will be asked: questions about a domain, and the one reader of what people write for them."""

from dphist.model.workload.questions import Boxes, Kind, Tables
from dphist.model.workload.workload import Workload

__all__ = ["Boxes", "Kind", "Tables", "Workload"]
