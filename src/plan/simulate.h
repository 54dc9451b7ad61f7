/* SPDX-License-Identifier: BSD-3-Clause */
/* Costs that the planner's simulation counts with; starlin__plan_simulate() itself is in planner.h. */
#ifndef STARLIN_SIMULATE_H
#define STARLIN_SIMULATE_H

#include "plan/planner.h"

/* One gemm, and one collective, of so many rows, alone. Never negative, infinite or NaN. */
double starlin__simulate_gemm_us(const starlin__plan_input_t *input, int64_t rows);
double starlin__simulate_comm_us(const starlin__plan_input_t *input, int64_t rows);

#endif
