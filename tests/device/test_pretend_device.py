"""The pretend accelerator itself: what it refuses, what it counts, and that it goes again."""

from __future__ import annotations

import copy

import pytest
import torch
import torch.nn.functional as F
from pretend_device import PretendDevice, is_here, pretend_device

from lib.models.text_model import Encoded, device_of, in_buckets, pad


def there(device: PretendDevice, *shape: int) -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel())).view(shape).to(device.torch)


@pytest.mark.parametrize(
    "mix",
    [
        lambda a, b: a + b,
        lambda a, b: a @ b,
        lambda a, b: torch.cat([a, b]),
        lambda a, b: torch.stack([a[0, 0], b[0, 0]]),
        lambda a, b: torch.where(a > 1, a, b),
        lambda a, b: b[a[0].long()],
        lambda a, b: a.__setitem__(slice(0, 1), b[:1] + a[:1]),
        lambda a, b: a.index_put_((torch.tensor([0]),), b[0]),
        lambda a, b: F.embedding(b.long(), a),
        lambda a, b: b.sum() + a if False else a[0, 0] + b,
    ],
)
def test_tensors_of_two_devices_do_not_mix(device: PretendDevice, mix) -> None:
    with pytest.raises(RuntimeError, match="same device"):
        mix(there(device, 2, 2), torch.ones(2, 2))


def test_what_cuda_allows_is_allowed(device: PretendDevice) -> None:
    x = there(device, 2, 2)
    assert (x + torch.tensor(1.0)).cpu().tolist() == [[1, 2], [3, 4]]  # a number on the host
    assert x[torch.tensor([1, 0])].cpu().tolist() == [[2, 3], [0, 1]]  # an index on the host
    x[:, 0] = 7
    x[[0, 1], [1, 1]] = torch.zeros((), device=device.torch)
    assert x.tolist() == [[7, 0], [7, 0]]
    assert torch.tensor([1], device=device.torch).device == x.new_tensor([2.0]).device == x.device
    with pytest.raises((RuntimeError, TypeError)):
        x.numpy()


def test_the_hosts_generator_draws_nothing_on_the_device(device: PretendDevice) -> None:
    generator = torch.Generator().manual_seed(0)
    with pytest.raises(RuntimeError, match="generator"):
        torch.randn(2, generator=generator, device=device.torch)
    with pytest.raises(RuntimeError, match="generator"):
        there(device, 2).uniform_(generator=generator)


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: x.sum().item(),
        lambda x: bool((x > 0).all()),
        lambda x: x.cpu(),
        lambda x: x.tolist(),
        lambda x: x.nonzero(),
        lambda x: x[x > 1],
        lambda x: x.unique(),
        lambda x: float(x[0, 0]),
        lambda x: x.repeat_interleave(torch.tensor([1, 2]).to(x.device), dim=0),
        lambda x: torch.linalg.eigh(x @ x.T),
    ],
)
def test_the_host_waits(device: PretendDevice, wait) -> None:
    x = there(device, 2, 2)
    device.traffic.clear()
    wait(x)
    assert device.traffic.waits.total() >= 1


def test_arithmetic_makes_nobody_wait(device: PretendDevice) -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.GELU(), torch.nn.Linear(4, 2))
    host, x = copy.deepcopy(layer), there(device, 3, 2)
    layer.to(device.torch)
    device.traffic.clear()
    F.cross_entropy(layer(x), torch.zeros(3, dtype=torch.long, device=device.torch)).backward()
    assert not device.traffic.waits and not device.traffic.copies
    F.cross_entropy(host(x.cpu()), torch.zeros(3, dtype=torch.long)).backward()
    for p, q in zip(layer.parameters(), host.parameters(), strict=True):
        assert is_here(p.grad) and torch.allclose(p.grad.cpu(), q.grad)


def test_lines_of_lib_are_named_and_other_lines_are_not_counted(device: PretendDevice) -> None:
    ids, _ = pad([Encoded([1], [0])], 0, device=device.torch)
    assert device.traffic.totals() == {"waits": 0, "copies": 2, "doubles": 0}
    assert set(device.traffic.copies) == {
        line for line in device.traffic.copies if line.startswith("models/text_model.py:")
    }
    ids.double().cpu()
    in_buckets(lambda rows: torch.ones(len(rows), device=device.torch), [Encoded([1], [0])])
    assert device.traffic.totals()["waits"] == 0 and device.traffic.waits["outside of lib"] == 1


def test_an_lstm_and_packed_rows_learn_as_on_the_host(device: PretendDevice) -> None:
    torch.manual_seed(0)
    lstm, x = torch.nn.LSTM(2, 3, batch_first=True, bidirectional=True), torch.randn(2, 4, 2)
    found = []
    for place in (torch.device("cpu"), device.torch):
        here = copy.deepcopy(lstm).to(place)
        packed = torch.nn.utils.rnn.pack_padded_sequence(x.to(place), [4, 2], batch_first=True)
        out = torch.nn.utils.rnn.pad_packed_sequence(here(packed)[0], batch_first=True)[0]
        out.square().sum().backward()
        found.append([out, *(p.grad for p in here.parameters())])
        assert device_of(here).type == place.type
    for host, pretended in zip(*found, strict=True):
        torch.testing.assert_close(pretended.detach().cpu(), host.detach())


def test_afterwards_pytorch_is_as_it_was() -> None:
    before = torch.Tensor.tolist, torch.tensor, F.scaled_dot_product_attention
    with pretend_device() as device:
        kept = there(device, 2)
        assert torch.Tensor.tolist is not before[0]
    assert (torch.Tensor.tolist, torch.tensor, F.scaled_dot_product_attention) == before
    with torch.inference_mode():
        assert torch.ones(1).is_inference()
    with pytest.raises(AssertionError, match="outside of"):
        kept + 1
