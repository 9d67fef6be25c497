"""What is known of a cluster's GPUs: what there is, what every pod holds, what room is held, and what quotas leave.

The controller decides by it, and the commands and views read it. A library of its own, without I/O and clock:
docs/how-to/use-as-a-library.md shows it at work.
"""

from lamina.ledger.grant_objects import grant_object, grant_record
from lamina.ledger.holds import Hold, Why
from lamina.ledger.ledger import DoesNotFit, Ledger
from lamina.ledger.pod_holding import GrantRecord
from lamina.ledger.pod_rules import PodRules
from lamina.ledger.pod_stages import PodState, Stage, pod_state
from lamina.ledger.pods import ParsedPod, parse_pod
from lamina.ledger.quotas import ResourceQuotas

__all__ = [
    "DoesNotFit",
    "GrantRecord",
    "Hold",
    "Ledger",
    "ParsedPod",
    "PodRules",
    "PodState",
    "ResourceQuotas",
    "Stage",
    "Why",
    "grant_object",
    "grant_record",
    "parse_pod",
    "pod_state",
]
