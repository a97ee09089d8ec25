"""`garboard certs certificate-key`."""

import secrets

import click


@click.command(epilog="Example: garboard certs certificate-key")
def certificate_key() -> None:
    """Print a random key with which certificates can be encrypted to share them between control-plane nodes."""
    # AES-256, as 64 hexadecimal digits.
    click.echo(secrets.token_hex(32))
