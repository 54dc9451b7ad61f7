/* SPDX-License-Identifier: BSD-3-Clause */
/* The measured thing itself, written as a user of the library would write it. */
#include "graph.h"

#include <string.h>

/* As many layers as matter to a plan: a longer chain repeats itself. */
enum { PERF_PLANNED_LAYERS = 4 };

starlin_status_t perf_graph_plan(perf_graph_t *graph, starlin_context_t *context,
                                 const perf_problem_t *problem, const perf_chunking_t *request)
{
    starlin_linear_shape_t shape = {.m = problem->m,
                                    .n = problem->n,
                                    .k_local = problem->k_local,
                                    .dtype = problem->dtype,
                                    .reduction = problem->reduction};
    starlin_linear_shape_t shapes[PERF_PLANNED_LAYERS];
    starlin_chunking_options_t options = STARLIN_CHUNKING_OPTIONS_INIT;
    options.count = request->count;
    options.rows = request->nrows > 0 ? request->rows : NULL;
    options.nrows = request->nrows;
    memset(graph, 0, sizeof(*graph));
    graph->context = context;
    graph->problem = problem;
    for (unsigned i = 0; i < PERF_PLANNED_LAYERS; i++)
        shapes[i] = shape;
    return starlin_chunking_plan(
        context, shapes, problem->layers < PERF_PLANNED_LAYERS ? problem->layers : PERF_PLANNED_LAYERS,
        &options, &graph->chunking);
}

starlin_status_t perf_graph_fill(perf_graph_t *graph, starlin_matrix_t *w, const void *x)
{
    const perf_problem_t *problem = graph->problem;
    starlin_matrix_layout_t x_layout = {.cols = problem->k_local, .dtype = problem->dtype};
    starlin_matrix_layout_t y_layout = {.cols = problem->n, .dtype = problem->dtype};
    graph->w = w;
    STARLIN__FORWARD(starlin_matrix_create(graph->context, graph->chunking, &x_layout, &graph->x));
    STARLIN__FORWARD(starlin_matrix_write(graph->x, x, 0));
    for (unsigned i = 0; i < (problem->chain ? 2 : 1); i++)
        STARLIN__FORWARD(starlin_matrix_create(graph->context, graph->chunking, &y_layout, &graph->y[i]));
    return STARLIN_SUCCESS;
}

void perf_graph_release(perf_graph_t *graph)
{
    starlin_matrix_destroy(graph->x);
    starlin_matrix_destroy(graph->y[0]);
    starlin_matrix_destroy(graph->y[1]);
    starlin_chunking_destroy(graph->chunking);
    memset(graph, 0, sizeof(*graph));
}

starlin_status_t perf_graph_run(perf_graph_t *graph)
{
    starlin_row_linear_options_t options = STARLIN_ROW_LINEAR_OPTIONS_INIT;
    options.reduction = graph->problem->reduction;
    starlin_matrix_t *input = graph->x;
    for (unsigned layer = 0; layer < graph->problem->layers; layer++) {
        starlin_matrix_t *output = graph->y[graph->problem->chain ? layer % 2 : 0];
        STARLIN__FORWARD(starlin_row_linear(graph->context, input, graph->w, output, &options));
        if (graph->problem->chain)
            input = output;
    }
    return starlin_context_wait(graph->context);
}

starlin_matrix_t *perf_graph_output(const perf_graph_t *graph)
{
    return graph->y[graph->problem->chain ? (graph->problem->layers - 1) % 2 : 0];
}
