# SPDX-License-Identifier: GPL-3.0-or-later
"""FLOPs of a model's matrix products, counted by torch's formulas while the model computes a sample."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry
from torch.utils.module_tracker import ModuleTracker

PRODUCT = re.compile(r"mm(?!a)|matmul|linear|attention|attn|conv(?!ert)|lstm|gru|rnn|mv$|dot$")
"""Found in the name of an operation that may multiply matrices."""
ATTENTION = re.compile(r"attention|attn")


@dataclass(frozen=True)
class Cost:
    """FLOPs of a token: ``token``, plus ``key`` for each token that it sees (itself included)."""

    token: int = 0
    key: int = 0


@dataclass
class Products:
    """FLOPs of the products over a sample. ``states``: the count when the states of each step were made."""

    total: int = 0
    by_module: dict[str, int] = field(default_factory=dict)
    states: list[int] = field(default_factory=list)


class UnknownFlops(Exception):
    """The products of a model cannot be counted. The message gives the reason."""


class ProductCounter(TorchDispatchMode):
    """Counts the products that run in this context. UnknownFlops: an operation multiplies matrices, but torch has no formula for it.

    Outer products, as of positions and rotary frequencies, are not counted. A convolution along the tokens counts all its
    weights at each token.
    """

    def __init__(self, tokens: int, modules: ModuleTracker) -> None:
        super().__init__()
        self.tokens = tokens
        self.products = Products()
        self.read: set[int] = set()
        """Storages that operations have read."""
        self.attention_is_known = True
        self._made: dict[int, int] = {}
        self._modules = modules

    def made(self, tensor: torch.Tensor) -> int:
        """The count of FLOPs when a tensor was made."""
        return self._made.get(_storage(tensor), 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func._overloadpacket
        if packet not in flop_registry and func is not torch.ops.prim.device.default:
            with self:
                parts = func.decompose(*args, **kwargs)
            if parts is not NotImplemented:
                return parts
        if not func.is_view:  # a view alone does not compute
            self.read.update(_storage(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor))
        out = func(*args, **kwargs)
        self._count(packet, args, kwargs, out)
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self._made[_storage(leaf)] = self.products.total
        return out

    def _count(self, packet: Any, args: Any, kwargs: Any, out: Any) -> None:
        name = str(packet)
        module = max(self._modules.parents, key=len).partition(".")[2]
        if name in ("aten.convolution", "aten._convolution"):
            flops = 2 * args[1].numel() * self.tokens
        elif name in ("aten._grouped_mm", "transformers.grouped_mm_fallback"):  # each row by the matrix of its expert
            flops = 2 * args[0].numel() * args[1].shape[-1]
        elif name.startswith("aten._scaled_dot_product"):  # torch's formula refuses grouped heads
            query, key, value = args[:3]
            flops = 2 * query[..., 0].numel() * key.shape[-2] * (query.shape[-1] + value.shape[-1])
        elif packet in flop_registry:
            outer = name == "aten.bmm" and args[0].shape[-1] == 1
            flops = 0 if outer else flop_registry[packet](*args, **kwargs, out_val=out)
        elif not PRODUCT.search(name.partition(".")[2]) and name.partition(".")[0] in ("aten", "prim", "prims"):
            return
        elif ATTENTION.search(name):
            self.attention_is_known = False
            return
        else:
            raise UnknownFlops(f"the operation {name}, in {module or 'the model'}, has no formula")
        self.products.total += flops
        self.products.by_module[module] = self.products.by_module.get(module, 0) + flops


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


@dataclass
class CountedModel:
    """The cost of a forward pass over tokens."""

    whole: Cost
    modules: dict[str, Cost]
    """Cost by name of the module whose forward multiplies."""
    steps: list[Cost]
    """Cost up to the states of each step."""
    keys_are_known: bool
    """False: attention ran in an operation for which torch has no formula, so ``key`` is 0."""


def count_products(forward: Callable[[torch.Tensor], list[torch.Tensor]], model: Any, sample: torch.Tensor) -> CountedModel:
    """Runs ``forward``, which returns the states of the steps, over a sample [1, T] and over its first half. Products with weights
    grow with the number of tokens, products with keys with its square: two lengths separate them. Raises UnknownFlops."""
    long, short = sample.shape[1], sample.shape[1] // 2
    if short < 1:
        raise UnknownFlops("a context of one token does not tell weights and keys apart")
    counts = [_count(forward, model, sample[:, :length]) for length in (long, short)]

    def cost(a: int, b: int) -> Cost:
        key, rest = divmod(short * a - long * b, long * short * (long - short))
        token, more = divmod(a - key * long * long, long)
        if rest or more or key < 0 or token < 0:
            raise UnknownFlops("the products do not grow with the tokens and their keys alone")
        return Cost(token, key)

    a, b = (counter.products for counter in counts)
    modules = {name: cost(a.by_module.get(name, 0), b.by_module.get(name, 0)) for name in sorted({*a.by_module, *b.by_module})}
    whole = Cost(sum(c.token for c in modules.values()), sum(c.key for c in modules.values()))
    return CountedModel(whole, modules, [cost(*both) for both in zip(a.states, b.states)], counts[0].attention_is_known)


def _count(forward: Callable[[torch.Tensor], list[torch.Tensor]], model: Any, ids: torch.Tensor) -> ProductCounter:
    ran: set[Any] = set()
    handles = [m.register_forward_pre_hook(lambda module, _: ran.add(module)) for m in model.modules()]
    fast_attention = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # the fast path is one operation without a formula
    try:
        with torch.inference_mode(), ModuleTracker() as modules, ProductCounter(ids.numel(), modules) as counter:
            states = forward(ids)
            counter.products.states = [counter.made(state) for state in states]
    except (RuntimeError, NotImplementedError) as error:  # the model ran before; recording goes on without FLOPs
        raise UnknownFlops(f"the model does not run while its products are counted ({str(error).splitlines()[0]:.200})") from error
    finally:
        torch.backends.mha.set_fastpath_enabled(fast_attention)
        for handle in handles:
            handle.remove()
    for name, module in model.named_modules():
        for what, parameter in module.named_parameters(recurse=False):
            seen = parameter.is_meta or parameter.dim() < 2 or _storage(parameter) in counter.read
            if module in ran and not seen:
                raise UnknownFlops(f"{name}.{what} is read by code that torch does not see")
    return counter
