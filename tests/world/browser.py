"""A headless Chromium with one tab, driven over the DevTools protocol."""

import base64
import json
import os
import shutil
import signal
import subprocess
import time

from websockets.sync.client import connect

from harness import PATIENCE, scratch

NAMES = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    def __init__(self, test, size=(1280, 800)):
        program = next(filter(None, map(shutil.which, NAMES)), None)
        assert program, "there is no Chromium; install it, or run `scripts/test world` as root on Debian"
        self.profile = scratch(test)
        words = [program, "--headless=new", "--remote-debugging-port=0", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
                 f"--user-data-dir={self.profile}", f"--window-size={size[0]},{size[1]}", "about:blank"]
        if os.geteuid() == 0:
            words.insert(1, "--no-sandbox")
        environment = {**os.environ, "HOME": str(self.profile)}
        self.process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)
        test.addCleanup(self.end)
        port = self.until(lambda: (self.profile / "DevToolsActivePort").exists()
                          and (self.profile / "DevToolsActivePort").read_text().split())
        link = connect(f"ws://127.0.0.1:{port[0]}{port[1]}", max_size=None, open_timeout=PATIENCE)
        self.link = link.__enter__()
        test.addCleanup(link.__exit__, None, None, None)
        self.number, self.session, self.events = 0, None, []
        target = self.send("Target.getTargets")["targetInfos"]
        page = next(one for one in target if one["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def until(self, condition, patience=PATIENCE):
        late = time.monotonic() + patience
        while not (found := condition()):
            assert time.monotonic() < late, "it did not happen"
            time.sleep(0.02)
        return found

    def send(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.link.send(json.dumps(message))
        while True:
            answer = json.loads(self.link.recv(timeout=PATIENCE))
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def value(self, script):
        """What an expression is."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def shows(self, *words, patience=PATIENCE):
        """Waits until all these words are seen."""
        try:
            self.until(lambda: all(word in self.text() for word in words), patience)
        except AssertionError:
            raise AssertionError(f"{words} are not seen in\n{self.text()[:3000]}") from None

    def text(self):
        return self.value("document.body?.innerText ?? ''")

    def open(self, url):
        self.send("Page.navigate", url=url)

    def complaints(self):
        """What stands in its console as a mistake."""
        kinds = ("Runtime.exceptionThrown", "Log.entryAdded", "Page.javascriptDialogOpening")
        return [one for one in self.events if one.get("method") in kinds
                and one["params"].get("entry", {}).get("level", "error") == "error"]

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def end(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
