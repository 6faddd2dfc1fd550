"""`harebell operator-policies`: policies for limits to what others set."""

from __future__ import annotations

import click

from harebell.cli.noun import Noun
from harebell.cli.policies import fill


@click.group("operator-policies", cls=Noun)
def operator_policies() -> None:
    """Manage operator policies, for limits to what policies set."""


fill(operator_policies, "operator policy", operator=True)
