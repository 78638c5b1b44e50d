"""`everstep completion SHELL`: a script for the shell to read."""

import click
from click.shell_completion import get_completion_class

from everstep.doors.cli.session import session
from everstep.doors.cli.verbs import Verb


@click.command(
    cls=Verb,
    epilog="""
    echo 'eval "$(everstep completion bash)"' >> ~/.bashrc
    echo 'eval "$(everstep completion zsh)"' >> ~/.zshrc
    everstep completion fish > ~/.config/fish/completions/everstep.fish
    """,
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print completion for your shell."""
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, "everstep", "_EVERSTEP_COMPLETE").source()
    session().result_json({"script": script}) if session().json else session().result(script)
