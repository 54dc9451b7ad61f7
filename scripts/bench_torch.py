# SPDX-License-Identifier: BSD-3-Clause
"""The same layer in PyTorch: a stream per chunk, and on it the chunk's matmul and then its all_reduce.

Run by mpirun or torchrun, one process per rank; prints a table on rank 0 and writes JSON. Times are the host's, from
a barrier to the end of the last stream, the slowest rank's, medians of interleaved steps.
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist


def variable(*names, default):
    return int(next((os.environ[name] for name in names if name in os.environ), default))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", type=int, default=8192)
    parser.add_argument("-n", type=int, default=8192)
    parser.add_argument("-k", type=int, default=32768, help="over all ranks")
    parser.add_argument("-c", dest="chunks", default="1,2,4,8")
    parser.add_argument("-i", dest="iterations", type=int, default=20)
    parser.add_argument("-w", dest="warmups", type=int, default=5)
    parser.add_argument("--data", default="random,integers",
                        help="random: normal; integers: like starlin-perf's (a GPU draws less power on them)")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: gloo, to try this script")
    parser.add_argument("--json")
    return parser.parse_args()


def random_pair(m, n, k, device, dtype, rank):
    generator = torch.Generator(device=device).manual_seed(1 + rank)
    x = torch.randn(m, k, generator=generator, device=device, dtype=torch.float32)
    w = torch.randn(n, k, generator=generator, device=device, dtype=torch.float32)
    return x.to(dtype), (w / k**0.5).to(dtype)


def integer_pair(m, n, k, device, dtype, rank):
    """Small integers; pairs of columns cancel but for a few, and rows repeat: the kind of data of starlin-perf."""
    generator = torch.Generator(device=device).manual_seed(1 + rank)
    patterns = 32

    def table(partner_sign):
        values = torch.randint(-22, 23, (patterns, k // 2, 1), generator=generator, device=device)
        return torch.cat([values, partner_sign * values], 2).reshape(patterns, -1).to(dtype)

    def rows(count, patterns_table):
        return patterns_table[torch.randint(0, patterns, (count,), generator=generator, device=device)].contiguous()

    return rows(m, table(1)), rows(n, table(-1))


MAKERS = {"random": random_pair, "integers": integer_pair}


class Layer:
    """One way to run a step: buffers are made once, as are the streams."""

    def __init__(self, data, nchunks, x, w):
        self.data, self.nchunks, self.x, self.w = data, nchunks, x, w
        self.cuda = x.is_cuda
        self.y = torch.empty(x.shape[0], w.shape[0], device=x.device, dtype=x.dtype)
        self.pieces = list(zip(x.tensor_split(nchunks), self.y.tensor_split(nchunks)))
        self.streams = [torch.cuda.Stream() for _ in range(nchunks)] if self.cuda else []
        self.times_ms = []

    def step(self):
        if not self.cuda:
            works = []
            for x, y in self.pieces:
                torch.matmul(x, self.w.t(), out=y)
                works.append(dist.all_reduce(y, async_op=True))
            for work in works:
                work.wait()
            return
        for stream, (x, y) in zip(self.streams, self.pieces):
            with torch.cuda.stream(stream):
                torch.matmul(x, self.w.t(), out=y)
                dist.all_reduce(y)
        torch.cuda.synchronize()

    def relative_error(self):
        """Of the last step's first and last rows, against a sum in f32."""
        rows = [0, 1, self.x.shape[0] - 1]
        self.step()
        want = self.x[rows].float() @ self.w.float().t()
        dist.all_reduce(want)
        scale = (self.x[rows].float().abs() @ self.w.float().abs().t()).max()
        dist.all_reduce(scale, op=dist.ReduceOp.MAX)
        return ((self.y[rows].float() - want).abs().max() / scale).item()


def measure(layers, options):
    """Interleaved, forwards and backwards in turn, so that what drifts meets all alike."""
    device = layers[0].x.device
    for i in range(options.warmups + options.iterations):
        for layer in layers if i % 2 == 0 else reversed(layers):
            dist.barrier()
            if layer.cuda:
                torch.cuda.synchronize()
            start = time.perf_counter()
            layer.step()
            time_ms = 1000 * (time.perf_counter() - start)
            if i >= options.warmups:
                layer.times_ms.append(time_ms)
    for layer in layers:
        times = torch.tensor(layer.times_ms, device=device)
        dist.all_reduce(times, op=dist.ReduceOp.MAX)
        layer.times_ms = times.tolist()


def main():
    options = parse()
    rank = variable("RANK", "OMPI_COMM_WORLD_RANK", default=0)
    nranks = variable("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", default=1)
    local_rank = variable("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", default=0)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    cuda = options.device == "cuda"
    device = torch.device("cuda", local_rank % torch.cuda.device_count()) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo", init_method="env://", rank=rank, world_size=nranks)
    dtype = torch.bfloat16 if cuda else torch.float32  # gloo sums no bf16
    layers = []
    for data in options.data.split(","):
        x, w = MAKERS[data](options.m, options.n, options.k // nranks, device, dtype, rank)
        layers += [Layer(data, int(chunks), x, w) for chunks in options.chunks.split(",")]
    with torch.inference_mode():
        measure(layers, options)
        errors = [layer.relative_error() for layer in layers]
    if rank == 0:
        report(options, layers, errors, nranks, device)
    dist.destroy_process_group()


def report(options, layers, errors, nranks, device):
    cuda = device.type == "cuda"
    nccl = ".".join(map(str, torch.cuda.nccl.version())) if cuda else None
    print(f"# PyTorch {torch.__version__}, {'NCCL ' + nccl if cuda else 'gloo'}, {nranks} ranks, "
          f"{torch.cuda.get_device_name(device) if cuda else 'CPU'}")
    dtype = str(layers[0].x.dtype)[len("torch."):]
    print(f"# M={options.m} N={options.n} K={options.k} {dtype}, medians of {options.iterations}, ms")
    print("data      chunks   median      min      max    error")
    rows = []
    for layer, error in zip(layers, errors):
        row = {"data": layer.data, "chunks": layer.nchunks, "median_ms": statistics.median(layer.times_ms),
               "min_ms": min(layer.times_ms), "max_ms": max(layer.times_ms), "relative_error": error}
        rows.append(row)
        print(f"{row['data']:<9} {row['chunks']:6} {row['median_ms']:8.3f} {row['min_ms']:8.3f} {row['max_ms']:8.3f} "
              f"{error:8.1e}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"torch": torch.__version__, "nccl": nccl, "ranks": nranks, "m": options.m, "n": options.n,
                       "k": options.k, "iterations": options.iterations, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
