"""Rules about replies, and `validate`, which checks a reply against them."""

from .finding import Finding, Rule, Severity
from .validation import validate

__all__ = ["Finding", "Rule", "Severity", "validate"]
