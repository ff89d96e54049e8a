"""A small transformer whose attention the models of this package replace."""

import inspect
from dataclasses import dataclass

import mlx.core as mx
import mlx.nn as nn


@dataclass
class Args:
    model_type: str
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    vocab_size: int
    rope_theta: float = 10000.0

    @classmethod
    def from_dict(cls, params):
        known = inspect.signature(cls).parameters
        return cls(**{k: v for k, v in params.items() if k in known})


class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.heads, self.kv_heads = args.num_attention_heads, args.num_key_value_heads
        self.head_dim = args.hidden_size // self.heads
        self.q_proj = nn.Linear(args.hidden_size, self.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(args.hidden_size, self.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(args.hidden_size, self.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.heads * self.head_dim, args.hidden_size, bias=False)
        self.rope = nn.RoPE(self.head_dim, base=args.rope_theta)

    def __call__(self, x, cache):
        queries, keys, values = self.project(x)
        queries, keys, values, mask = self.positions(queries, keys, values, cache)
        scale = self.head_dim**-0.5
        out = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=scale, mask=mask)
        return self.o_proj(out.transpose(0, 2, 1, 3).reshape(x.shape))

    def project(self, x):
        rows, length, _ = x.shape
        parts = (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        return [p.reshape(rows, length, -1, self.head_dim).transpose(0, 2, 1, 3) for p in parts]

    def positions(self, queries, keys, values, cache):
        mask = cache.make_mask(queries.shape[2])
        queries = self.rope(queries, offset=cache.offset)
        keys = self.rope(keys, offset=cache.offset)
        keys, values = cache.update_and_fetch(keys, values)
        return queries, keys, values, mask


class Block(nn.Module):
    def __init__(self, args, attention):
        super().__init__()
        self.norm = nn.RMSNorm(args.hidden_size)
        self.attention = attention(args)
        self.mlp_norm = nn.RMSNorm(args.hidden_size)
        self.mlp_proj = nn.Linear(args.hidden_size, args.hidden_size, bias=False)

    def __call__(self, x, cache):
        x = x + self.attention(self.norm(x), cache)
        return x + nn.silu(self.mlp_proj(self.mlp_norm(x)))


class Base(nn.Module):
    attention = Attention

    def __init__(self, args):
        super().__init__()
        self.embed_tokens = nn.Embedding(args.vocab_size, args.hidden_size)
        self.layers = [Block(args, self.attention) for _ in range(args.num_hidden_layers)]
        self.norm = nn.RMSNorm(args.hidden_size)
        self.lm_head = nn.Linear(args.hidden_size, args.vocab_size, bias=False)

    def __call__(self, inputs, cache=None):
        x = self.embed_tokens(inputs)
        for layer, c in zip(self.layers, cache, strict=True):
            x = layer(x, c)
        return self.lm_head(self.norm(x))
