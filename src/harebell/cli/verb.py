"""A verb of the command line: a click command whose complaints name the one nearest flag."""

from __future__ import annotations

import click

from harebell.base.names import did_you_mean


class Verb(click.Command):
    """A command that answers a wrong flag with the nearest right one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments, or say what is wrong with them."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            flags = [
                flag
                for parameter in self.get_params(ctx)
                if isinstance(parameter, click.Option) and not parameter.hidden
                for flag in (*parameter.opts, *parameter.secondary_opts)
                if flag.startswith("--")
            ]
            name = error.option_name
            raise click.UsageError(f"No option {name}: {did_you_mean(name, flags)}", ctx) from None
