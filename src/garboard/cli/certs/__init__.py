"""`garboard certs`: certificates of the node this runs on."""

import secrets

import click

from garboard.cli.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "check-expiration": LazyCommand(
        "garboard.cli.certs.expiration:check_expiration", "Show when certificates and their authorities end."
    ),
    "renew": LazyCommand("garboard.cli.certs.renew:renew", "Issue certificates again, with what they say now."),
    "generate-csr": LazyCommand(
        "garboard.cli.certs.generate_csr:generate_csr", "Make keys and signing requests for an external CA."
    ),
    "certificate-key": LazyCommand(
        "garboard.cli.certs:certificate_key", "Print a key to encrypt shared certificates with."
    ),
}


@click.group(cls=LazyGroup, lazy=COMMANDS, epilog="Example: garboard certs check-expiration --output json")
def certs() -> None:
    """Check, renew and request the certificates of a control-plane node."""


@click.command(epilog="Example: garboard certs certificate-key")
def certificate_key() -> None:
    """Print a random key with which certificates can be encrypted to share them between control-plane nodes."""
    # AES-256, as 64 hexadecimal digits.
    click.echo(secrets.token_hex(32))
