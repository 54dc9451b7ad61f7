/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for activity_cupti.c in a build without CUPTI. */
#include "record/activity.h"

const starlin__activity_ops_t *const starlin__activity_cupti;
