#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands for ssh in tests: called as ssh is (options, --, host, command), it gives the command to a shell of this
machine. What the line between is like, FAR_SHELL says, a JSON object:

delay     seconds that every byte is under way, each way
greeting  what the shell prints first
cut       a file: while it exists there is no connection, and one that stands is cut
stall     [a word, a number]: of commands with this word no more than so many bytes come through
environment  variables for the far side
"""
import json
import os
import subprocess
import sys
import threading
import time
from collections import deque

wish = json.loads(os.environ.get("FAR_SHELL", "{}"))
host, command = sys.argv[sys.argv.index("--") + 1:]
cut = wish.get("cut", "")


def refuse():
    sys.stderr.write(f"ssh: connect to host {host} port 22: Connection refused\n")
    sys.stderr.flush()
    os._exit(255)


if cut and os.path.exists(cut):
    refuse()
if host == "nowhere":
    refuse()
child = subprocess.Popen(["/bin/sh", "-c", wish.get("greeting", "") + command], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, env={**os.environ, **wish.get("environment", {})})


def carry(source, sink, most):
    """Bytes in order, each after the delay; reading goes on meanwhile, until there were as many as may come."""
    line = deque()
    more = threading.Condition()

    def deliver():
        while True:
            with more:
                more.wait_for(lambda: line)
                due, data = line.popleft()
            time.sleep(max(0.0, due - time.monotonic()))
            if not data:
                os.close(sink)
                return
            try:
                while data:
                    data = data[os.write(sink, data):]
            except OSError:
                return

    thread = threading.Thread(target=deliver, daemon=True)
    thread.start()
    while True:
        while most <= 0:
            time.sleep(60)
        data = os.read(source, min(most, 1 << 16))
        most -= len(data)
        with more:
            line.append((time.monotonic() + wish.get("delay", 0.0), data))
            more.notify()
        if not data:
            return thread.join()


word, stall = wish.get("stall", ["", sys.maxsize])
back = stall if word in command else sys.maxsize
threads = [threading.Thread(target=carry, args=way, daemon=True)
           for way in ((0, child.stdin.fileno(), sys.maxsize), (child.stdout.fileno(), 1, back))]
for one in threads:
    one.start()
while threads[1].is_alive():
    threads[1].join(0.02)
    if cut and os.path.exists(cut):
        # As under sshd, what runs there loses its streams and is not killed.
        sys.stderr.write(f"Connection to {host} closed by remote host.\n")
        sys.stderr.flush()
        os._exit(255)
os._exit(child.wait())
