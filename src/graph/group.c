/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: operators that are put off until the group's end, and then inserted chunk by chunk across all of
 * them. Nothing here can fail once a call is put off. */
#include "graph/graph.h"

enum { MOST_GROUPED = 64 };

typedef struct entry {
    starlin__call_t call;
    starlin__record_t *records; /* not inserted yet */
} entry_t;

typedef struct starlin__group {
    bool is_open;
    size_t count;
    entry_t entries[MOST_GROUPED];
} group_t;

/* All operators on chunk 0, then on chunk 1, ... */
static void flush(group_t *group)
{
    size_t left = group->count;

    while (left > 0) {
        left = 0;
        for (size_t i = 0; i < group->count; i++) {
            starlin__record_t *record = group->entries[i].records;
            if (record == NULL)
                continue;
            group->entries[i].records = record->next;
            starlin__graph_insert(&group->entries[i].call, record);
            left += group->entries[i].records != NULL;
        }
    }
    group->count = 0;
}

/* Does one of the two calls write what the other uses as a whole, or are they cut differently? Then the order
 * by chunk would break the dependency. */
static bool must_follow(const starlin__call_t *call, const starlin__call_t *earlier)
{
    const starlin_matrix_t *writes = call->operands[call->kind->output]->root;
    const starlin_matrix_t *wrote = earlier->operands[earlier->kind->output]->root;

    if (!starlin__rows_equal(call->operands[0]->rows, earlier->operands[0]->rows))
        return true;
    for (int i = 0; i < STARLIN__MOST_OPERANDS; i++) {
        const starlin_matrix_t *a = call->operands[i], *b = earlier->operands[i];
        if ((a != NULL && a->rows == NULL && a->root == wrote) ||
            (b != NULL && b->rows == NULL && b->root == writes))
            return true;
    }
    return false;
}

void starlin__graph_put_off(const starlin__call_t *call, starlin__record_t *records)
{
    group_t *group = call->context->group;
    bool follows = group->count == MOST_GROUPED;

    for (size_t i = 0; i < group->count && !follows; i++)
        follows = must_follow(call, &group->entries[i].call);
    if (follows)
        flush(group);
    group->entries[group->count].call = *call;
    group->entries[group->count++].records = records;
}

starlin_status_t starlin_group_begin(starlin_context_t *context)
{
    if (context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "context is NULL");
    if (context->group == NULL)
        context->group = starlin__alloc(sizeof *context->group);
    if (context->group == NULL)
        return starlin__error(STARLIN_ERR_NO_MEMORY, "a group of operators");
    if (context->group->is_open)
        return starlin__error(STARLIN_ERR_INVALID, "starlin_group_begin within a group");
    context->group->is_open = true;
    return STARLIN_SUCCESS;
}

starlin_status_t starlin_group_end(starlin_context_t *context)
{
    if (context == NULL)
        return starlin__error(STARLIN_ERR_INVALID, "context is NULL");
    if (context->group == NULL || !context->group->is_open)
        return starlin__error(STARLIN_ERR_INVALID, "starlin_group_end without starlin_group_begin");
    context->group->is_open = false;
    flush(context->group);
    return STARLIN_SUCCESS;
}

bool starlin__graph_is_grouping(const starlin_context_t *context)
{
    return context->group != NULL && context->group->is_open;
}

void starlin__graph_flush(starlin_context_t *context)
{
    if (context->group != NULL)
        flush(context->group);
}
