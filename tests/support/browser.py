"""A real headless browser, driven over pipes by the DevTools protocol: pages are opened, asked and pictured."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)  # fmt: skip
_ANSWER_S = 120.0


class Browser:
    """One browser with one page."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._write, self._read = to_browser, from_browser
        self._rest, self._count, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []

    def begin(self) -> None:
        """Open an empty page."""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, url: str, *, is_untrusted: bool = False) -> None:
        if is_untrusted:
            self._ask("Security.setIgnoreCertificateErrors", ignore=True)
        self._ask("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """Return what a script of the page comes to."""
        done = self._ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def text(self) -> str:
        return str(self.run("document.body ? document.body.innerText : ''"))

    def until(self, script: str, within_s: float = 120.0) -> None:
        """Wait until a script of the page comes to something true; while the page is loaded, scripts may fail."""
        give_up_at = time.monotonic() + within_s
        while not self.run(f"(() => {{ try {{ return {script}; }} catch {{ return false; }} }})()"):
            assert time.monotonic() < give_up_at, f"{script}\n{self.text()}\n{self.complaints()}"
            time.sleep(0.05)

    def until_text(self, text: str) -> None:
        self.until(f"document.body && document.body.innerText.includes({json.dumps(text)})")

    def look(self, width: int, height: int, *, is_dark: bool = False) -> None:
        """Have the page drawn at a size, for people who prefer light or dark."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        """Return what the browser has complained about, such as what a policy forbade, and exceptions of scripts."""
        found = []
        for each in self.events:
            if each["method"] == "Log.entryAdded" and each["params"]["entry"]["level"] == "error":
                found.append(str(each["params"]["entry"]["text"]))
            elif each["method"] == "Runtime.exceptionThrown":
                found.append(str(each["params"]["exceptionDetails"]))
        return found

    def asked_for(self) -> set[str]:
        """Return the URLs that were asked for."""
        sent = (each for each in self.events if each["method"] == "Network.requestWillBeSent")
        return {str(each["params"]["request"]["url"]) for each in sent}

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        number = self._count
        session = {"sessionId": self._session} if self._session else {}
        message = json.dumps({"id": number, "method": method, "params": params, **session})
        os.write(self._write, message.encode() + b"\0")
        give_up_at = time.monotonic() + _ANSWER_S
        while True:
            answer = self._next(give_up_at)
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return dict(answer["result"])
            if "method" in answer:
                self.events.append(answer)

    def _next(self, give_up_at: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._read], [], [], max(give_up_at - time.monotonic(), 0.0))[0], "no answer"
            read = os.read(self._read, 1 << 20)
            assert read, "the browser has ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Run the browser of the machine with a profile of its own."""
    program = shutil.which("chromium")
    assert program is not None, "tools/setup/system-packages browser"
    theirs, to_browser = os.pipe()
    from_browser, told = os.pipe()
    command = [program, *_FLAGS, f"--user-data-dir={folder / 'profile'}"]
    # The protocol is spoken on the descriptors 3 and 4.
    shell = ["bash", "-c", f'exec "$@" 3<&{theirs} 4>&{told} {theirs}<&- {told}>&-', "chromium", *command]
    with (folder / "browser.log").open("wb") as log:
        process = subprocess.Popen(shell, pass_fds=(theirs, told), stdout=log, stderr=log)
    for each in (theirs, told):
        os.close(each)
    try:
        made = Browser(to_browser, from_browser)
        made.begin()
        yield made
    finally:
        process.kill()
        process.wait(30)
        for each in (to_browser, from_browser):
            os.close(each)


def wait_for(probe: Callable[[], object], what: str, within_s: float = 120.0) -> None:
    """Wait until something holds that is not of the page."""
    give_up_at = time.monotonic() + within_s
    while not probe():
        assert time.monotonic() < give_up_at, what
        time.sleep(0.05)
