"""The garboard command for tests that run it as a process: `python -m tests.support.tunnel.command tunnel agent …`."""

from garboard.cli.main import main

if __name__ == "__main__":
    main()
