// SPDX-License-Identifier: BSD-3-Clause
// finish on a device. Additions and products are rounded one by one, so without erf, tanh and exp the bits
// are the host's.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <type_traits>

#include "compute/finish.h"

namespace
{

const unsigned THREADS = 256, MOST_BLOCKS = 4096;

template <typename T, int WIDTH> struct alignas(WIDTH * sizeof(T)) vector {
    T element[WIDTH];
};

// Of 1 the data is f32 or T; 2 to 4 are T. ld in elements, 0: every row is the first.
struct arguments {
    void *data[5];
    int64_t ld[5], rows, cols;
    starlin_activation_kind_t activation;
};

// The compiler contracts none of these with an addition.
__device__ float multiply(float a, float b)
{
    return __fmul_rn(a, b);
}
__device__ double multiply(double a, double b)
{
    return __dmul_rn(a, b);
}

template <typename R> __device__ R activate(starlin_activation_kind_t activation, R x)
{
    switch (activation) {
    case STARLIN_RELU:
        return x < 0 ? 0 : x;
    case STARLIN_GELU:
        return x / 2 * (1 + erf(x * (R)0.70710678118654752440));
    case STARLIN_GELU_TANH:
        return x / 2 * (1 + tanh((R)0.79788456080286535588 * (x + (R)0.044715 * x * x * x)));
    case STARLIN_SILU:
    case STARLIN_SWIGLU:
        return x / (1 + exp(-x));
    default:
        return x;
    }
}

template <int WIDTH, typename T>
__device__ vector<T, WIDTH> load(const arguments &args, int view, int64_t row, int64_t column)
{
    const T *data = static_cast<const T *>(args.data[view]) + row * args.ld[view] + column;
    return *reinterpret_cast<const vector<T, WIDTH> *>(data);
}

template <typename T, typename S, int WIDTH>
__device__ void finish(const arguments &args, int64_t row, int64_t column)
{
    typedef typename std::conditional<std::is_same<T, double>::value, double, float>::type R;
    const vector<S, WIDTH> src = load<WIDTH, S>(args, 1, row, column);
    vector<T, WIDTH> out, bias, residual, factor;
    if (args.data[2] != nullptr)
        bias = load<WIDTH, T>(args, 2, row, column);
    if (args.data[3] != nullptr)
        residual = load<WIDTH, T>(args, 3, row, column);
    if (args.data[4] != nullptr)
        factor = load<WIDTH, T>(args, 4, row, column);
    for (int i = 0; i < WIDTH; i++) {
        R x = (R)src.element[i];
        if (args.data[2] != nullptr)
            x += (R)bias.element[i];
        x = activate(args.activation, x);
        if (args.data[4] != nullptr)
            x = multiply(x, (R)factor.element[i]);
        if (args.data[3] != nullptr)
            x += (R)residual.element[i];
        out.element[i] = (T)x;
    }
    T *dst = static_cast<T *>(args.data[0]) + row * args.ld[0] + column;
    *reinterpret_cast<vector<T, WIDTH> *>(dst) = out;
}

// WIDTH elements a thread, the last ones of a row one by one.
template <typename T, typename S, int WIDTH> __global__ void finish_kernel(const arguments args)
{
    const int64_t first = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * WIDTH;
    const int64_t stride = (int64_t)gridDim.x * blockDim.x * WIDTH;
    for (int64_t row = (int64_t)blockIdx.y * blockDim.y + threadIdx.y; row < args.rows;
         row += (int64_t)gridDim.y * blockDim.y)
        for (int64_t column = first; column < args.cols; column += stride)
            if (column + WIDTH <= args.cols)
                finish<T, S, WIDTH>(args, row, column);
            else
                for (int64_t i = column; i < args.cols; i++)
                    finish<T, S, 1>(args, row, i);
}

template <typename T, typename S> int launch(const arguments &args, bool vectors, cudaStream_t stream)
{
    const int64_t width = vectors ? 4 : 1, wanted = (args.cols + width - 1) / width;
    dim3 block(1), grid;
    while (block.x < THREADS && block.x < wanted)
        block.x *= 2;
    block.y = THREADS / block.x;
    const int64_t across = (wanted + block.x - 1) / block.x, down = (args.rows + block.y - 1) / block.y;
    grid.x = across < MOST_BLOCKS ? (unsigned)across : MOST_BLOCKS;
    grid.y = down < MOST_BLOCKS ? (unsigned)down : MOST_BLOCKS;
    if (vectors)
        finish_kernel<T, S, 4><<<grid, block, 0, stream>>>(args);
    else
        finish_kernel<T, S, 1><<<grid, block, 0, stream>>>(args);
    return (int)cudaGetLastError();
}

} // namespace

extern "C" int starlin__finish_launch(const starlin__rowwise_args_t *given, void *foreign)
{
    const starlin__view_t *views = given->views, *dst = &views[0];
    const cudaStream_t stream = static_cast<cudaStream_t>(foreign);
    const bool widens = views[1].dtype != dst->dtype, row_only = views[2].data != nullptr;
    arguments args = {{}, {}, dst->rows, dst->cols, given->activation};
    bool flat = !row_only, vectors = true, alone = !row_only && given->activation == STARLIN_IDENTITY;
    if (dst->rows == 0 || dst->cols == 0)
        return (int)cudaSuccess;
    for (int i = 0; i < 5; i++) {
        const size_t nbytes = starlin_dtype_nbytes(views[i].dtype);
        if (views[i].data == nullptr)
            continue;
        args.data[i] = views[i].data;
        args.ld[i] = i == 2 ? 0 : views[i].ld;
        flat = flat && args.ld[i] == dst->cols;
        vectors = vectors && (uintptr_t)args.data[i] % (4 * nbytes) == 0;
        alone = alone && i < 2;
    }
    for (int i = 0; i < 5; i++)
        vectors = vectors && (flat || args.ld[i] % 4 == 0);
    if (alone && !widens) {
        const size_t nbytes = starlin_dtype_nbytes(dst->dtype);
        if (args.data[0] == args.data[1])
            return (int)cudaSuccess;
        return (int)cudaMemcpy2DAsync(args.data[0], (size_t)args.ld[0] * nbytes, args.data[1],
                                      (size_t)args.ld[1] * nbytes, (size_t)args.cols * nbytes,
                                      (size_t)args.rows, cudaMemcpyDeviceToDevice, stream);
    }
    if (flat) {
        args.cols *= args.rows;
        args.rows = 1;
    }
    switch (dst->dtype) {
    case STARLIN_F32:
        return launch<float, float>(args, vectors, stream);
    case STARLIN_F64:
        return launch<double, double>(args, vectors, stream);
    case STARLIN_F16:
        return widens ? launch<__half, float>(args, vectors, stream)
                      : launch<__half, __half>(args, vectors, stream);
    case STARLIN_BF16:
        return widens ? launch<__nv_bfloat16, float>(args, vectors, stream)
                      : launch<__nv_bfloat16, __nv_bfloat16>(args, vectors, stream);
    }
    return (int)cudaErrorInvalidValue;
}
