"""Prints the CloudFormation template of docs/guides/recipes/aws-alb.md, for `make template`."""

from __future__ import annotations

import sys

from tests.docs.test_deployment_recipes import ALB, blocks

sys.stdout.write(blocks(ALB, "yaml")[0])
