/* SPDX-License-Identifier: BSD-3-Clause */
/* A BLAS that cannot tell what it is. Row-major; transposes as CBLAS numbers them: 111 none, 112 transposed.
 */
#define DEFINE_GEMM(name, type)                                                                              \
    void name(int layout, int transpose_a, int transpose_b, int m, int n, int k, type alpha, const type *a,  \
              int lda, const type *b, int ldb, type beta, type *c, int ldc);                                 \
    void name(int layout, int transpose_a, int transpose_b, int m, int n, int k, type alpha, const type *a,  \
              int lda, const type *b, int ldb, type beta, type *c, int ldc)                                  \
    {                                                                                                        \
        (void)layout;                                                                                        \
        for (int i = 0; i < m; i++)                                                                          \
            for (int j = 0; j < n; j++) {                                                                    \
                type sum = 0;                                                                                \
                for (int l = 0; l < k; l++)                                                                  \
                    sum += (transpose_a == 111 ? a[i * lda + l] : a[l * lda + i]) *                          \
                           (transpose_b == 111 ? b[l * ldb + j] : b[j * ldb + l]);                           \
                c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);                      \
            }                                                                                                \
    }

DEFINE_GEMM(cblas_sgemm, float)
DEFINE_GEMM(cblas_dgemm, double)
