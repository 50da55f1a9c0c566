# SPDX-License-Identifier: GPL-3.0-or-later
"""A language model of somebody's own code, which the package knows nothing of."""

from __future__ import annotations

from typing import Any

import torch
import transformers


class OwnModel(transformers.PreTrainedModel):
    """Subclasses name `config_class`, and `base_class` with `embed`."""

    base_model_prefix = "model"
    base_class: Any

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.model = self.base_class(config)
        vocabulary, width = self.model.embed.weight.shape
        self.lm_head = torch.nn.Linear(width, vocabulary, bias=False)
        self.post_init()

    def get_input_embeddings(self) -> Any:
        return self.model.embed

    def get_output_embeddings(self) -> Any:
        return self.lm_head

    def forward(self, input_ids: Any, attention_mask: Any = None, **options: Any) -> Any:
        states = self.model(input_ids, attention_mask, **options).last_hidden_state
        return transformers.modeling_outputs.CausalLMOutput(logits=self.lm_head(states))
