"""The image that has garboard in it: controllers, attempts and the ends of tunnels run from it."""

from typing import Final

GARBOARD_IMAGE: Final = "garboard.local/garboard:v0.1.0"
