#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this card can do, by PyTorch alone: a copy, a bf16 product and the library's causal attention. Ratios of ours are
against these."""

from __future__ import annotations

import sys

import torch


def seconds(work, rounds: int = 5) -> float:
    """Median of `rounds`, by events of the device."""
    times = []
    for _ in range(rounds + 1):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return sorted(times[1:])[rounds // 2]


def main() -> int:
    if not torch.cuda.is_available():
        print("Error: PyTorch finds no GPU", file=sys.stderr)
        return 1
    device = torch.device("cuda")
    print("figure", torch.cuda.get_device_name(device), torch.__version__, "cuDNN", torch.backends.cudnn.version())
    data = torch.randint(0, 256, (2 << 30,), dtype=torch.uint8, device=device)
    copy = torch.empty_like(data)
    print(f"figure copy {2 * data.nbytes / seconds(lambda: copy.copy_(data)) / 1e12:.2f} TB/s read and written")
    del data, copy
    a, b = (torch.randn(8192, 8192, device=device, dtype=torch.bfloat16) for _ in range(2))
    print(f"figure bf16 product {2 * 8192**3 / seconds(lambda: a @ b) / 1e12:.0f} TFLOP/s")
    for heads, size in ((16, 64), (16, 128)):
        q, k, v = (torch.randn(8, heads, 2048, size, device=device, dtype=torch.bfloat16) for _ in range(3))
        flops = 2 * 2 * 8 * heads * 2048 * 2048 * size / 2
        for name, backend in (("cuDNN", torch.nn.attention.SDPBackend.CUDNN_ATTENTION), ("flash", torch.nn.attention.SDPBackend.FLASH_ATTENTION)):
            try:
                with torch.nn.attention.sdpa_kernel(backend):
                    took = seconds(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
                print(f"figure causal attention, heads of {size}, {name}: {flops / took / 1e12:.0f} TFLOP/s")
            except RuntimeError as error:
                print(f"figure causal attention, heads of {size}, {name}: not available ({str(error).splitlines()[0][:60]})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
