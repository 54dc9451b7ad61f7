/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for activity_events_cuda.c in a build without CUDA. */
#include "record/activity.h"

const starlin__activity_ops_t *const starlin__activity_events;
