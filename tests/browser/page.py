#!/usr/bin/env python3
"""Tests the page of a recording (espalier export FILE --html) in a browser.

    tests/browser/page.py BROWSER PAGE.html HOSTILE.html [PICTURES]

BROWSER is Chromium or Chrome, controlled over a pipe (--remote-debugging-pipe), so only Python's standard library
is needed. The script reads facts from the document: it shows the recording, keys and buttons change what is shown,
hostile text is shown as plain text, no other file is loaded, every text has a contrast of at least 4.5:1, and a phone
needs no sideways scrolling. PICTURES is a folder for screenshots.
"""
import base64
import json
import os
import pathlib
import subprocess
import sys
import tempfile

PASSED = FAILED = 0


def check(what, good, more=""):
    global PASSED, FAILED
    PASSED, FAILED = PASSED + bool(good), FAILED + (not good)
    if not good:
        print(f"  FAILED page: {what} {more}")


class Browser:
    """A headless browser with one page."""

    def __init__(self, program, profile):
        (read, self.out), (self.inp, write) = os.pipe(), os.pipe()

        def places():  # the browser reads from file descriptor 3 and writes to 4
            os.dup2(os.dup(read), 30)
            os.dup2(os.dup(write), 40)
            os.dup2(30, 3)
            os.dup2(40, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--hide-scrollbars", "about:blank"],
            close_fds=False, preexec_fn=places, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read)
        os.close(write)
        self.number, self.rest, self.events, self.session = 0, b"", [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(domain + ".enable")

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.inp, 1 << 20)
            if not more:
                raise SystemExit("page: the browser ended")
            self.rest += more
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def ask(self, method, **params):
        self.number += 1
        call = {"id": self.number, "method": method, "params": params}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.out, json.dumps(call).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def comes_true(self, condition):
        """Waits until a condition is true, at most half a minute. Returns whether the condition is true."""
        return self.run("new Promise((done) => { const start = Date.now(), look = () => "
                        f"{condition} ? done(true) : Date.now() - start > 30000 ? done(false) : "
                        "setTimeout(look, 20); look(); })")

    def open(self, path, width=1280, height=800, phone=False, media=()):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.ask("Emulation.setEmulatedMedia", media="",
                 features=[{"name": name, "value": value} for name, value in media])
        self.events = []
        self.ask("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def key(self, key, text=None):
        code = {" ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36,
                "End": 35}.get(key, 0)
        more = {"text": text} if text else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def picture(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def close(self):
        try:
            self.session = None
            self.ask("Browser.close")
        except (OSError, SystemExit):
            pass
        self.process.wait()


HELPERS = """
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("recording").textContent);
const at = () => Number($("place").value);
const stage = () => (document.querySelector('#stages [aria-current]') || {textContent: "whole"}).textContent;
"""

# This script returns the lowest contrast between a text and its background, and the text that has it.
CONTRAST = """(() => {
const light = (c) => { const f = c.map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
                       return .2126 * f[0] + .7152 * f[1] + .0722 * f[2]; };
const rgb = (s) => s.match(/[\\d.]+/g).map(Number);
const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
                        if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
let least = [99, ""];
for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || e.closest("script, noscript") || !e.getClientRects().length) continue;
    const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < least[0]) least = [ratio, e.className + " " + e.textContent.slice(0, 40)];
}
return least; })()"""


def look_at_page(browser, path):
    browser.open(path)
    run = browser.run
    run(HELPERS.replace("const ", "var "))
    count = run("data.iterations.length")
    errors = [event for event in browser.events if event["method"] in ("Runtime.exceptionThrown", "Log.entryAdded")]
    check("the page reports no errors", not errors, str(errors)[:300])
    asked = [event["params"]["request"]["url"] for event in browser.events
             if event["method"] == "Network.requestWillBeSent"]
    check("the browser loads no file except the page", len(asked) == 1 and asked[0].startswith("file:"), asked)
    check("the page opens at the first iteration", run("at()") == 0 and run("stage()") == "whole")
    check("the scrubber ends at the last iteration", run("Number($('place').max)") == count - 1)
    check("the tree has the recorded nodes",
          run("document.querySelectorAll('.item').length") ==
          run("data.iterations[0].nodes.length + (data.iterations[0].bonus === undefined ? 0 : 1)"))
    check("the accepted path is marked",
          run("document.querySelectorAll('.item.accepted').length") ==
          run("data.iterations[0].nodes.filter((n, i) => i && n[2] === 1).length"))
    text = run("$('text').textContent")
    browser.key("ArrowRight")
    check("the Right key goes to the next iteration", run("at()") == 1)
    check("the text is longer after the Right key", len(run("$('text').textContent")) > len(text))
    check("the part marked as new in the text consists of the committed tokens",
          run("[...document.querySelectorAll('#text .new')].map((e) => e.textContent).join('')") ==
          run("data.iterations[1].text.filter((v, i) => i % 2 === 0).map((s) => data.strings[s]).join('')"))
    browser.key(",", ",")
    check("the comma key goes back one stage", run("stage()") == "commit" and run("at()") == 1)
    for _ in range(3):
        browser.key(",", ",")
    check("at stage draft, the tree shows no verdicts", run("stage()") == "draft" and
          run("document.querySelectorAll('.item.accepted, .item.target').length") == 0)
    check("at stage draft, the root is the selected node",
          run("document.querySelector('.item[aria-selected=true]').dataset.index") == "0")
    check("at stage draft, the page still shows the text of the previous iteration", run("$('text').textContent") == text)
    browser.key(".", ".")
    check("the dot key goes forward one stage", run("stage()") == "verify")
    browser.key("End")
    check("the End key goes to the last iteration", run("at()") == count - 1)
    browser.key("Home")
    check("the Home key goes to the first iteration", run("at()") == 0 and run("$('text').textContent") == text)
    run("$('forward').click()")
    check("the forward button goes to the next iteration", run("at()") == 1)
    run("$('place').value = 3; $('place').dispatchEvent(new Event('input'))")
    check("moving the scrubber shows the chosen iteration", run("at()") == 3 and "(4 of" in run("$('number').textContent"))
    run("document.querySelector('.item[data-index=\"1\"]').click()")
    check("selecting a node shows the sentence about it", run("$('node-said').textContent") ==
          run("(() => { const n = data.iterations[3].nodes[1]; "
              "return data.strings[n[0]] + ': ' + data.strings[n[10]] + '.'; })()"))
    browser.key("ArrowLeft")
    check("the arrow keys move the selection in the tree", run("document.activeElement.dataset.index") == "0" and run("at()") == 3)
    run("document.activeElement.blur(); $('speed').value = '12'")
    browser.key(" ", " ")
    check("the Space key starts the playback", run("$('play').getAttribute('aria-label')") == "pause")
    check("during playback, iterations are shown one after another", browser.comes_true("at() > 4"))
    browser.key(" ", " ")
    check("pressing Space again pauses the playback", run("$('play').getAttribute('aria-label')") == "play")
    check("thresholds have charts", run("document.querySelectorAll('#charts .course').length") > 0)
    check("stages have times", run("document.querySelectorAll('#time dd').length") == 6)
    check("every picture has a description",
          run("[...document.querySelectorAll('svg')].every((s) => s.getAttribute('aria-label') || "
              "s.getAttribute('aria-hidden'))"))
    check("every button has a name", run("[...document.querySelectorAll('button')].every((b) => "
                                         "b.getAttribute('aria-label') || b.textContent)"))
    paper = run("getComputedStyle(document.documentElement).backgroundColor")
    run("$('theme').click()")
    check("a button switches between the light and the dark scheme",
          run("getComputedStyle(document.documentElement).backgroundColor") != paper)


def look_at_colours(browser, path):
    for scheme in ("light", "dark"):
        browser.open(path, media=(("prefers-color-scheme", scheme), ("prefers-reduced-motion", "reduce")))
        browser.run(HELPERS.replace("const ", "var "))
        for _ in range(4):
            browser.key("ArrowRight")
            least = browser.run(CONTRAST)
            check(f"every text has enough contrast in the {scheme} scheme", least[0] >= 4.5, least)
        check("if the user prefers reduced motion, nodes have no transitions",
              browser.run("parseFloat(getComputedStyle(document.querySelector('.item')).transitionDuration)") == 0)


def look_at_phone(browser, path):
    browser.open(path, 390, 844, True)
    browser.run(HELPERS.replace("const ", "var "))
    for _ in range(5):
        check("on a phone, the page needs no sideways scrolling",
              browser.run("document.documentElement.scrollWidth <= 390 && $('tree-box').scrollWidth <= "
                          "$('tree-box').clientWidth"))
        browser.key("ArrowRight")
    check("on a phone the buttons are at least 44 pixels large",
          browser.run("[...document.querySelectorAll('#buttons button')].every((b) => "
                      "b.getBoundingClientRect().width >= 44 && b.getBoundingClientRect().height >= 44)"))
    place = browser.run("(() => { const r = $('forward').getBoundingClientRect(); return [r.x + 9, r.y + 9]; })()")
    before = browser.run("at()")
    for kind in ("touchStart", "touchEnd"):
        points = [{"x": place[0], "y": place[1]}] if kind == "touchStart" else []
        browser.ask("Input.dispatchTouchEvent", type=kind, touchPoints=points)
    check("on a phone, touching a button presses it", browser.comes_true(f"at() === {before + 1}"))


def look_at_hostile(browser, path):
    browser.open(path)
    run = browser.run
    run(HELPERS.replace("const ", "var "))
    names = "html head meta title style body header h1 span p button noscript main section h2 div ol li dl dt dd " \
            "figure figcaption footer label output input select option script svg path bdi".split()
    for at in range(run("data.iterations.length")):
        run(f"$('place').value = {at}; $('place').dispatchEvent(new Event('input'))")
        found = run("[...new Set([...document.querySelectorAll('*')].map((e) => e.localName))]")
        check("hostile text creates no elements in the page", set(found) <= set(names), set(found) - set(names))
        check("no script in a hostile text has run", run("window.evil === undefined && document.scripts.length === 2"))
        check("no text has direction overrides or control characters",
              not run(r"/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/"
                      ".test(document.body.innerText + document.title)"))
    try:
        run("document.body.innerHTML = '<b>x</b>'")
        check("the page's security policy does not let scripts turn text into markup", False)
    except RuntimeError:
        check("the page's security policy does not let scripts turn text into markup", True)


def take_pictures(browser, path, folder):
    for name, scheme, width, height, phone, at in (
            ("desktop-light", "light", 1280, 800, False, 5), ("desktop-dark", "dark", 1280, 800, False, 12),
            ("wide", "light", 1920, 1080, False, 20), ("phone", "light", 390, 844, True, 5),
            ("phone-dark", "dark", 390, 844, True, 8)):
        browser.open(path, width, height, phone, (("prefers-color-scheme", scheme),))
        browser.run(HELPERS.replace("const ", "var "))
        browser.run(f"$('place').value = {at}; $('place').dispatchEvent(new Event('input'))")
        browser.picture(os.path.join(folder, name + ".png"))
        if phone:
            browser.run("scrollTo(0, 99999)")
            browser.picture(os.path.join(folder, name + "-end.png"))
    browser.open(path, 1280, 800)
    browser.run(HELPERS.replace("const ", "var "))
    browser.run("$('place').value = 5; $('place').dispatchEvent(new Event('input'))")
    with open(os.path.join(folder, "print.pdf"), "wb") as file:
        file.write(base64.b64decode(browser.ask("Page.printToPDF")["data"]))


def main():
    program, page, hostile = sys.argv[1:4]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            look_at_page(browser, page)
            look_at_colours(browser, page)
            look_at_phone(browser, page)
            look_at_hostile(browser, hostile)
            if len(sys.argv) > 4:
                take_pictures(browser, page, sys.argv[4])
        finally:
            browser.close()
    print(f"page: {PASSED} passed, {FAILED} failed")
    return FAILED > 0


sys.exit(main())
