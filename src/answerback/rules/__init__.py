"""What makes a reply right: named rules, and `validate`, which puts a reply to them."""

from .finding import Finding, Rule, Severity
from .validation import validate

__all__ = ["Finding", "Rule", "Severity", "validate"]
