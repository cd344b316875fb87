"""Autocast for a device that torch knows nothing of, by the policies of CUDA, in Python.

Source: https://docs.pytorch.org/docs/stable/amp.html, "CUDA Op-Specific Behavior". Operations have the names here that
they have in ATen, which lists them for all devices in `ATen/autocast_mode.h`.
Departures: CUDA keeps the copy of a weight until autocast ends. Here each use makes its own, so that gradients of
several uses are added up in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

KEY = torch._C.DispatchKey.AutocastPrivateUse1
# The arguments of an operation and autocast's lower precision -> what they are cast to, None for left as they are
Policy = Callable[[Sequence[Any], torch.dtype], torch.dtype | None]
copied: list[Tensor] = []  # weights that autocast has copied for training since the list was emptied


def lower_precision(given: Sequence[Any], lower: torch.dtype) -> torch.dtype:
    return lower


def float32(given: Sequence[Any], lower: torch.dtype) -> torch.dtype:
    return torch.float32


def float32_unless_told(given: Sequence[Any], lower: torch.dtype) -> torch.dtype | None:
    return None if any(isinstance(one, torch.dtype) for one in given) else torch.float32


def widest(given: Sequence[Any], lower: torch.dtype) -> torch.dtype:
    return torch.float32 if any(isinstance(one, Tensor) and one.dtype is torch.float32 for one in given) else lower


POLICIES: Mapping[Policy, str] = {
    lower_precision: """
        _convolution _convolution.deprecated conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input
        conv_transpose3d.input convolution prelu addmm addmv addr matmul einsum mm mv linalg_vecdot linear addbmm
        baddbmm bmm chain_matmul linalg_multi_dot _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm_cell gru_cell
        rnn_tanh_cell rnn_relu_cell _scaled_dot_product_flash_attention scaled_dot_product_attention""",
    float32: """
        acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow.Tensor_Scalar
        pow.Tensor_Tensor pow.Scalar softplus layer_norm native_layer_norm rms_norm group_norm frobenius_norm.dim
        nuclear_norm nuclear_norm.dim norm.Scalar norm.ScalarOpt_dim cosine_similarity poisson_nll_loss
        cosine_embedding_loss nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss
        mse_loss margin_ranking_loss multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss
        binary_cross_entropy_with_logits dist pdist cdist renorm logsumexp upsample_nearest1d
        _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d upsample_nearest3d
        _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d
        upsample_bicubic2d _upsample_bicubic2d_aa""",
    float32_unless_told: """
        prod prod.dim_int softmax.int log_softmax.int cumprod cumsum linalg_vector_norm linalg_matrix_norm
        linalg_matrix_norm.str_ord sum sum.dim_IntList""",
    widest: """
        addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add""",
}
KERNELS, OTHERS = torch.library.Library("aten", "IMPL"), torch.library.Library("_", "IMPL")


def put_autocast(device: str) -> None:
    """Let `torch.autocast` of torch's own spare device, by the name that it was given, act as CUDA's does."""
    OTHERS.fallback(torch.library.fallthrough_kernel, KEY.name)
    for policy, names in POLICIES.items():
        for name in names.split():
            base, _, overload = name.partition(".")
            operation = getattr(getattr(torch.ops.aten, base), overload or "default")
            KERNELS.impl(name, partial(_run, operation, policy, device), KEY.name)


def mapped(change: Callable[[Tensor], Any], of: Any) -> Any:
    """What an operation takes or gives, each tensor changed. torch's own `tree_map_only` takes several times as long."""
    if isinstance(of, Tensor):
        return change(of)
    if isinstance(of, list | tuple):
        return type(of)([mapped(change, one) for one in of])
    if isinstance(of, dict):
        return {name: mapped(change, one) for name, one in of.items()}
    return of


def _run(operation: Any, policy: Policy, device: str, *args: Any, **kwargs: Any) -> Any:
    lower = torch.get_autocast_dtype(device)
    kind = policy((*args, *kwargs.values()), lower)

    def cast(one: Tensor) -> Tensor:
        eligible = one.is_floating_point() and one.dtype is not torch.float64 and one.device.type == device
        if kind is None or not eligible or one.dtype is kind:
            return one
        if torch.is_grad_enabled() and one.requires_grad and one.is_leaf and kind is lower:
            copied.append(one)
        return one.to(kind)

    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(KEY)):
        return operation(*mapped(cast, args), **mapped(cast, kwargs))
