/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of operators, from the public list. */
#include "graph/stage.h"

#define KIND_DECLARE(name, text) extern const starlin__operator_kind_t starlin__##text##_kind;
STARLIN_OPERATOR_MAP(KIND_DECLARE)

#define KIND_ENTRY(name, text) [STARLIN_OP_##name] = &starlin__##text##_kind,
const starlin__operator_kind_t *const starlin__operators[STARLIN_NOPERATORS] = {
    STARLIN_OPERATOR_MAP(KIND_ENTRY)};
