# SPDX-License-Identifier: GPL-3.0-or-later
"""Ponderscope's engine as a model of EleutherAI's lm-evaluation-harness.

    python -m ponderscope.harness --model ponderscope --model_args pretrained=DIR,trace=out.ponder --tasks arc_easy

This is `lm_eval` with the model `ponderscope` registered; every argument goes to lm_eval. Releases of lm_eval up to 0.4 load no models
from other packages, so `lm_eval` alone does not know the model. In Python: `from ponderscope.harness import PonderscopeLM`.

`ponderscope score` computes the answers (the program on PATH, or named by PONDERSCOPE_PROGRAM). With `trace` every request is
recorded as a sequence of one run. `ponderscope tasks out.ponder` then shows accuracy and steps.
"""

from __future__ import annotations

import gc
import json
import logging
import subprocess
import threading
import weakref
from typing import Any, Iterable

from .program import find

try:
    import lm_eval.models  # noqa: F401  (the harness registers its own models only while no model is registered)
    from lm_eval.api.instance import Instance
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model
    from lm_eval.api.task import Task
except ModuleNotFoundError as missing:
    if missing.name and not missing.name.startswith("lm_eval"):
        raise
    raise ImportError("ponderscope.harness needs lm-evaluation-harness 0.4.2 or newer: pip install lm_eval.") from None
except ImportError as other:
    raise ImportError(f"ponderscope.harness needs lm-evaluation-harness 0.4.2 or newer, found another version ({other}).") from None

logger = logging.getLogger("ponderscope")

# model_args that are options of `ponderscope score`.
OPTIONS = {
    "method": "--method", "steps": "--steps", "policy": "--policy", "kv": "--kv", "jacobi": "--jacobi", "initial_state": "--initial-state",
    "device": "--device", "dtype": "--dtype", "trace": "--output", "record": "--record", "name": "--name", "max_length": "--context",
    "batch": "--batch", "bos": "--bos", "parse_special": "--parse-special",
}  # fmt: skip
MAX_NEW_TOKENS = ("max_gen_toks", "max_new_tokens", "max_tokens", "max_completion_tokens")


class EngineError(RuntimeError):
    """An error of the engine, with the engine's message."""


def _close(process: subprocess.Popen[str], said: list[str], reader: threading.Thread) -> None:
    """Closes the engine's input. The engine then completes the run and ends."""
    if process.stdin and not process.stdin.closed:
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
    code = process.wait()
    reader.join()
    if code:
        logger.error("ponderscope: %s", said[-1] if said else f"exit code {code}")


@register_model("ponderscope")
class PonderscopeLM(LM):
    """A checkpoint under its own halting rule or a policy. `pretrained` is its folder. The other arguments are options of `ponderscope
    score`: `policy`, `kv`, `jacobi`, `method`, `steps`, `device`, `dtype`, `max_length`, `batch`, `bos`, `parse_special`; for a recording
    `trace`, `record` and `name`. Write a comma within a value as a semicolon: policy=uniform:rate=1;seed=7."""

    def __init__(self, pretrained: str, batch_size: Any = None, max_batch_size: Any = None, program: str | None = None, **options: Any) -> None:
        super().__init__()
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            raise ValueError(f"model_args: expected pretrained, program, {', '.join(OPTIONS)}; found {', '.join(unknown)}.")
        # lm_eval's default batch_size of 1 is not passed on, because requests that share a beginning need larger batches.
        if str(batch_size).isdigit() and int(batch_size) > 1:
            options.setdefault("batch", batch_size)
        if options.get("device") == "cuda:0":  # lm_eval's default, even without a GPU
            options["device"] = "auto"
        program = program or find()
        if not program:
            raise OSError("The program ponderscope is not on the PATH; set PONDERSCOPE_PROGRAM to its path.")
        command = [program, "score", str(pretrained), "--progress", "none"]
        for name, value in options.items():
            if value is not None:
                command += [OPTIONS[name], str(value).replace(";", ",")]
        self.pretrained, self.options = str(pretrained), options
        self._tasks: dict[str, Task] = {}
        self._said: list[str] = []
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace"
        )
        self._reader = threading.Thread(target=self._hear, args=(self._process.stderr, self._said), daemon=True)
        self._reader.start()
        self._finalizer = weakref.finalize(self, _close, self._process, self._said, self._reader)

    @staticmethod
    def _hear(stream: Iterable[str], said: list[str]) -> None:
        for line in stream:
            said.append(line.rstrip())
            logger.info("%s", said[-1])

    def close(self) -> None:
        """Completes the run in the trace. The end of the Python process does this, too."""
        self._finalizer()

    def ask(self, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Sends requests and returns the answers in the same order. EngineError: the engine ended, or a request is wrong."""

        def write() -> None:
            try:
                for request in requests:
                    self._process.stdin.write(json.dumps(request) + "\n")
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError):
                pass  # the engine writes the reason to standard error

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        answers = []
        for request in requests:
            line = self._process.stdout.readline()
            if not line:
                code = self._process.wait()
                self._reader.join()
                said = self._said[-1] if code > 0 and self._said else f"exit code {code}."
                raise EngineError(f"The engine ended after {len(answers)} of {len(requests)} requests: {said}")
            answer = json.loads(line)
            if "error" in answer:
                raise EngineError(f"{request.get('group', 'request')}: {answer['error']}")
            answers.append(answer)
        writer.join()
        return answers

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        asked = []
        for request, about in zip(requests, self._describe(requests)):
            context, continuation = request.args[:2]
            asked.append({"type": "loglikelihood", "context": context, "continuation": continuation, **about})
        answers = [(answer["loglikelihood"], answer["is_greedy"]) for answer in self.ask(asked)]
        for request, answer in zip(requests, answers):
            self.cache_hook.add_partial("loglikelihood", request.args, answer)
        return answers

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        asked = [{"type": "loglikelihood_rolling", "text": r.args[0], **about} for r, about in zip(requests, self._describe(requests))]
        answers = [answer["loglikelihood"] for answer in self.ask(asked)]
        for request, answer in zip(requests, answers):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, answer)
        return answers

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        asked = []
        for request, about in zip(requests, self._describe(requests)):
            context, wishes = request.args[:2]
            until = wishes.get("until") or []
            sampled = wishes.get("do_sample", float(wishes.get("temperature") or 0) > 0)
            wanted = {
                "until": [until] if isinstance(until, str) else list(until),
                "max_tokens": int(next((wishes[key] for key in MAX_NEW_TOKENS if wishes.get(key) is not None), 256)),
                "temperature": float(wishes.get("temperature", 1.0)) if sampled else 0.0,
            }
            for key in ("top_k", "top_p", "seed"):
                if sampled and wishes.get(key) is not None:
                    wanted[key] = wishes[key]
            asked.append({"type": "generate_until", "context": context, **wanted, **about})
        answers = [answer["text"] for answer in self.ask(asked)]
        for request, answer in zip(requests, answers):
            self.cache_hook.add_partial("generate_until", request.args, answer)
        return answers

    def get_model_info(self) -> dict[str, Any]:
        return {"pretrained": self.pretrained, **{key: str(value) for key, value in self.options.items() if value is not None}}

    def _describe(self, requests: list[Instance]) -> list[dict[str, str]]:
        """Group (TASK/DOCUMENT) and label (right, wrong or unconditional, and the option's number) of each request, for the trace."""
        if "trace" not in self.options:
            return [{} for _ in requests]
        answers: dict[tuple[str, int], tuple[set[int], int] | None] = {}
        described = []
        for request in requests:
            key = (request.task_name, request.doc_id)
            if key not in answers:
                answers[key] = self._right_options(request)
            about = {"group": f"{request.task_name}/{request.doc_id}"}
            if request.request_type == "loglikelihood" and answers[key] is not None:
                right, options = answers[key]
                which = "unconditional" if request.idx >= options else "right" if request.idx in right else "wrong"
                about["label"] = f"{which} {request.idx % options}"
            described.append(about)
        return described

    def _right_options(self, request: Instance) -> tuple[set[int], int] | None:
        """The numbers of the right options, and the number of all options; None: the task does not say."""
        if request.task_name not in self._tasks:  # an Instance has no reference to its Task
            self._tasks.update({found.config.task: found for found in gc.get_objects() if isinstance(found, Task) and found.config.task})
        task = self._tasks.get(request.task_name)
        try:
            if getattr(task, "OUTPUT_TYPE", None) == "loglikelihood":
                return {0}, 1
            choices = task.doc_to_choice(request.doc)
            target = task.doc_to_text(request.doc) if getattr(task, "multiple_input", 0) else task.doc_to_target(request.doc)
            targets = target if isinstance(target, list) else [target]
            return {choices.index(one) if isinstance(one, str) else int(one) for one in targets}, len(choices)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            logger.warning("%s: the right option is not recorded (%s).", request.task_name, error)
            return None


def main() -> None:
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()


if __name__ == "__main__":
    main()
