#!/usr/bin/env python3
"""Opens made-up reports in headless Chromium: they must draw, and the console must stay silent.

usage: report_test.py SAMPLE_REPORT      exit 77: there is no Chromium, nothing was tested
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile


def browser():
    for name in (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name) if name else None
        if path:
            return path
    print("SKIPPED: no Chromium on this machine (apt-get install chromium, or set CHROMIUM)")
    sys.exit(77)


def render(chromium, page, folder):
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
               f"--user-data-dir={folder}/profile", "--enable-logging=stderr", "--v=0",
               "--window-size=1280,2000", "--virtual-time-budget=5000", "--dump-dom",
               f"file://{page}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout, console


def main():
    sample = os.path.abspath(sys.argv[1])
    chromium = browser()
    failures = []

    def expect(ok, what):
        print(("ok      " if ok else "FAILED  ") + what)
        if not ok:
            failures.append(what)

    with tempfile.TemporaryDirectory() as folder:
        for which in ("suite", "hostile"):
            page = f"{folder}/{which}.html"
            subprocess.run([sample, which, page], check=True)
            dom, console = render(chromium, page, folder)
            expect(not console, f"{which}: the console is silent {console[:3]}")
            ready = re.search(r'data-ready="runs=(\d+) points=(\d+) spans=(\d+)"', dom)
            expect(ready is not None, f"{which}: the script came to its end")
            counts = [int(n) for n in ready.groups()] if ready else [0, 0, 0]
            if which == "suite":
                expect(counts[0] == 4 and counts[1] > 1000 and counts[2] > 1000,
                       f"suite: runs, points, spans = {counts}")
                expect(dom.count('class="curve"') == 8, "suite: four curves on each of two charts")
                expect(len(re.findall(r'<rect class="(?:compute|send|wait)"', dom)) > 50,
                       "suite: the Gantt chart has bars")
                expect('class="band"' in dom, "suite: the timeline is drawn on the curves")
                expect("off by 7.0 %" in dom, "suite: the links' figures are shown")
                expect("Gradient-free is not cheaper to ship here" in dom,
                       "suite: it says what ships more")
            else:
                expect('id="pwned"' not in dom.replace("&lt;b id=\"pwned\"", "")
                       and "<img" not in re.sub(r"<(script|title|pre)\b.*?</\1>", "", dom, flags=re.S)
                       .replace('"&lt;', ""), "hostile: no name became markup")
                expect("<title>pwned" not in dom, "hostile: no name ran as script")
                expect("incomplete" in dom, "hostile: the cut run is marked")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
