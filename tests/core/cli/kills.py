#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kills `ponderscope record`, a rank of several that record together, `merge --join` and `train` (kill -9) at random moments and
looks at what is left.

  kills.py PROGRAM TREE [--count N] [--seed S] [--verbs record,world,merge,train]

What is left must be sound by `ponderscope check`; what was interrupted is taken up again until it ends, and must then be what an
uninterrupted run gives. The moments are spread over the time that an uninterrupted run takes, its beginning included.
"""
import argparse
import concurrent.futures
import glob
import hashlib
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time


def fail(what, done=None):
    print("FAILED:", what)
    if done is not None:
        print(done.stdout, done.stderr)
    sys.exit(1)


class Kills:
    def __init__(self, program, tree, folder, seed):
        self.program, self.tree, self.folder = program, tree, folder
        self.random = random.Random(seed)
        self.kills = 0

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run(self, *arguments, extra=None):
        return subprocess.run([self.program, *arguments], capture_output=True, text=True, env={**os.environ, **(extra or {})})

    def must(self, *arguments, extra=None):
        begin = time.monotonic()
        done = self.run(*arguments, extra=extra)
        if done.returncode != 0:
            fail(" ".join(arguments), done)
        return time.monotonic() - begin

    def start(self, *arguments, extra=None):
        return subprocess.Popen([self.program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                env={**os.environ, **(extra or {})})

    def killed(self, duration, *arguments, process=None):
        """Whether it was killed before it ended."""
        process = process or self.start(*arguments)
        try:
            code = process.wait(timeout=duration * self.random.random())
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            code = process.wait()
        if code == -signal.SIGKILL:
            self.kills += 1
            return True
        if code != 0:
            fail(f"{arguments} ended with {code}", self.run(*arguments))
        return False

    def sound(self, trace):
        done = self.run("check", trace)
        # Killed before its tables were committed, it is no trace yet.
        if done.returncode != 0 and "another program" not in done.stderr and "an empty file" not in done.stderr:
            fail(f"check {trace}", done)
        return done.returncode == 0

    @staticmethod
    def content(trace):
        """All that does not tell of the moment of recording."""
        database = sqlite3.connect(f"file:{trace}?mode=ro", uri=True)
        rows = [database.execute("SELECT name, complete, sequences, tokens, nll_sum FROM run ORDER BY id").fetchall()]
        for table in ("token_row", "text", "vocabulary", "label"):
            rows.append(database.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall())
        rows.append(database.execute("SELECT sequence, signal, first_token, data FROM chunk ORDER BY 1, 2, 3").fetchall())
        return rows

    def record_arguments(self, trace):
        corpus = self.path("corpus.jsonl")
        if not os.path.exists(corpus):
            with open(os.path.join(self.tree, "sample_models/texts/stories.txt"), encoding="utf-8") as file:
                words = file.read().split(" ")
            with open(corpus, "w", encoding="utf-8") as file:
                for at in range(0, 120 * 40, 40):
                    part = " ".join(words[(at + i) % len(words)] for i in range(40))
                    file.write(json.dumps({"text": part}) + "\n")
        return ("record", os.path.join(self.tree, "sample_models/vanilla-neox-1m"), "--name", "r", "--jsonl", corpus,
                "--batch", "2", "-o", trace)

    def record(self, count):
        whole = self.path("whole.ponder")
        duration = self.must(*self.record_arguments(whole))
        expected = self.content(whole)
        trace = self.path("killed.ponder")
        while self.kills < count:
            for old in glob.glob(trace + "*"):
                os.remove(old)
            complete = False
            while not complete:
                arguments = self.record_arguments(trace)
                if self.killed(duration, *arguments, "--resume"):
                    if os.path.exists(trace):
                        self.sound(trace)
                else:
                    complete = True
            if self.content(trace) != expected:
                fail("what was taken up again is not what was recorded at once")

    def world(self, count):
        """One rank of several dies, the others end their shards; a world of any size takes them up."""
        whole = self.path("whole.ponder")
        duration = self.must(*self.record_arguments(whole))
        expected = self.content(whole)
        shards = self.path("world")

        def ranks(size):
            return [{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)} for rank in range(size)]

        while self.kills < count:
            shutil.rmtree(shards, ignore_errors=True)
            os.makedirs(shards)
            arguments = self.record_arguments(os.path.join(shards, "s.ponder"))
            size = self.random.choice((2, 3, 4))
            processes = [self.start(*arguments, extra=rank) for rank in ranks(size)]
            victim = processes.pop(self.random.randrange(len(processes)))
            self.killed(duration, *arguments, process=victim)
            for process in processes:
                if process.wait() != 0:
                    fail("a rank did not outlive another one")
            for shard in glob.glob(shards + "/*.ponder"):
                self.sound(shard)
            again = [self.start(*arguments, "--resume", extra=rank) for rank in ranks(size)]
            if any([process.wait() for process in again]):
                fail("what a dead rank left was not taken up")
            joined = self.path("joined.ponder")
            if os.path.exists(joined):
                os.remove(joined)
            self.must("merge", "--join", shards, "-o", joined)
            if self.content(joined) != expected:
                fail("shards of which one was taken up again are not what one process records")

    def merge(self, count):
        shards = self.path("shards")
        os.makedirs(shards)
        world = {"WORLD_SIZE": "2", "LOCAL_RANK": "0"}
        arguments = self.record_arguments(os.path.join(shards, "s.ponder"))
        with concurrent.futures.ThreadPoolExecutor() as both:
            list(both.map(lambda rank: self.must(*arguments, extra={**world, "RANK": rank}), "01"))
        before = {name: hashlib.sha256(open(name, "rb").read()).hexdigest() for name in glob.glob(shards + "/*")}
        output = self.path("joined.ponder")
        duration = self.must("merge", "--join", shards, "-o", output)
        expected = self.content(output)
        while self.kills < count:
            if os.path.exists(output):
                os.remove(output)
            self.killed(duration, "merge", "--join", shards, "-o", output)
            if os.path.exists(output) and (not self.sound(output) or self.content(output) != expected):
                fail("a join that was killed left something else than the whole")
            for name, digest in before.items():
                if hashlib.sha256(open(name, "rb").read()).hexdigest() != digest:
                    fail(f"{name} was changed")
            for left in glob.glob(output + ".merging-*"):
                os.remove(left)

    def train(self, count):
        recipe = self.path("recipe.json")
        with open(self.path("a.txt"), "w", encoding="utf-8") as file:
            file.write("Ring once, and she came for one; ring twice, and she came for two. " * 40)
        with open(recipe, "w", encoding="utf-8") as file:
            json.dump({"name": "killed",
                       "model": {"model_type": "gpt_neox", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
                                 "intermediate_size": 64, "rotary_pct": 0.5, "initializer_range": 0.1},
                       "tokenizer": os.path.realpath(os.path.join(self.tree, "sample_models/tokenizer/tokenizer.json")),
                       "texts": {"train": ["a.txt"], "document_end": "<|endoftext|>"},
                       "training": {"steps": 60, "context": 16, "batch": 2, "seed": 7},
                       "optimizer": {"learning_rate": 0.01, "warmup_steps": 2},
                       "checkpoint": {"every": 2}, "log": {"every": 1}, "output": {"dtype": "float32"}}, file)

        def arguments(output):
            return ("train", recipe, "-o", output)

        whole = self.path("whole")
        duration = self.must(*arguments(whole))
        digest = hashlib.sha256(open(os.path.join(whole, "model.safetensors"), "rb").read()).hexdigest()
        output = self.path("trained")
        while self.kills < count:
            shutil.rmtree(output, ignore_errors=True)
            while True:
                more = ["--resume"] if os.path.isdir(output) and os.listdir(output) else []
                if not self.killed(duration, *arguments(output), *more):
                    break
            if hashlib.sha256(open(os.path.join(output, "model.safetensors"), "rb").read()).hexdigest() != digest:
                fail("a training that was taken up again is another one")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("tree")
    parser.add_argument("--count", type=int, default=int(os.environ.get("PONDERSCOPE_KILLS", "3")), help="kills of each verb")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbs", default="record,world,merge,train")
    options = parser.parse_args()
    for verb in options.verbs.split(","):
        with tempfile.TemporaryDirectory() as folder:
            kills = Kills(options.program, options.tree, folder, options.seed)
            begin = time.monotonic()
            getattr(kills, verb)(options.count)
            print(f"{verb}: {kills.kills} kills, all sound ({time.monotonic() - begin:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
