# SPDX-License-Identifier: GPL-3.0-or-later
"""The digest of a checkpoint folder. core/checkpoint computes the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

PIECE = 16 << 20
"""Bytes of one read."""


def digest_of_checkpoint(model: Any) -> tuple[str, str]:
    """(digest of the folder that a model was loaded from, ""), or ("", the reason why there is no digest)."""
    name = str(getattr(model, "name_or_path", "") or "")
    config = file_of(name, "config.json")
    if config is None:
        return "", ""  # built in memory: no reason is needed
    folder = config.parent
    files = weight_files(folder)
    if not files:
        return "", f"{name} has no safetensors, so the run has no digest of its checkpoint."
    if not _holds_weights_of(folder, files, model):
        return "", f"The weights differ from the weights in {name}, so the run has no digest of its checkpoint."
    return checkpoint_digest(folder, files), ""


def checkpoint_digest(folder: Path, files: list[str]) -> str:
    """SHA-256 over config.json and the weights: for each file, sorted by name, its name, a zero byte, its size as eight
    little-endian bytes, its content."""
    digest = hashlib.sha256()
    for name in sorted({"config.json", *files}):
        with open(folder / name, "rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            digest.update(name.encode() + b"\0" + size.to_bytes(8, "little"))
            while piece := file.read(PIECE):
                digest.update(piece)
    return digest.hexdigest()


def weight_files(folder: Path) -> list[str]:
    """Names of the files that the engine reads weights from; empty: no safetensors, or a file is missing."""
    index = folder / "model.safetensors.index.json"
    if (folder / "model.safetensors").is_file():
        return ["model.safetensors"]
    if not index.is_file():
        return []
    names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    return sorted(names) if all((folder / name).is_file() for name in names) else []


def file_of(name: str, file: str) -> Path | None:
    """Path of a file in the folder ``name``, or in the hub's cache of the model ``name``; None: no such file."""
    if not name:
        return None
    if Path(name).is_dir():
        return Path(name, file) if Path(name, file).is_file() else None
    try:
        from transformers.utils import cached_file

        found = cached_file(name, file, local_files_only=True)
    except (ImportError, OSError, ValueError):
        return None
    return Path(found) if found else None


def _holds_weights_of(folder: Path, files: list[str], model: Any) -> bool:
    """Whether the files hold every parameter with equal numbers, in the model's dtype. A parameter has its own name in the files or,
    because classes rename parameters (embed_out, lm_head), a name that no parameter has."""
    from safetensors import safe_open

    parameters = dict(model.named_parameters(remove_duplicate=False))
    if any(parameter.is_meta for parameter in parameters.values()):
        return False  # offloaded weights cannot be compared
    prefix = getattr(model, "base_model_prefix", "") + "."
    missing = {id(parameter): parameter for parameter in parameters.values()}
    nameless: list[tuple[str, str]] = []

    def same(stored: torch.Tensor, parameter: torch.Tensor) -> bool:
        return stored.shape == parameter.shape and stored.to(parameter.device, parameter.dtype).equal(parameter)

    for name in files:
        with safe_open(folder / name, framework="pt") as tensors:
            for key in tensors.keys():
                known = [k for k in (key, prefix + key, key.removeprefix(prefix)) if k in parameters]
                if not known:
                    nameless.append((name, key))
                elif same(tensors.get_tensor(key), parameters[known[0]]):
                    missing.pop(id(parameters[known[0]]), None)
                else:
                    return False
    for name, key in nameless:
        with safe_open(folder / name, framework="pt") as tensors:
            shape = tensors.get_slice(key).get_shape()
            for number, parameter in list(missing.items()):
                if list(parameter.shape) == shape and same(tensors.get_tensor(key), parameter):
                    del missing[number]
    return not missing
