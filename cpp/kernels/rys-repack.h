// The CPU backend's buffer type for weights that our kernels multiply (see rys-kernels.h).

#pragma once

#include "ggml-backend.h"

ggml_backend_buffer_type_t rys_repack_buffer_type(void);

#ifdef __cplusplus
extern "C" {
#endif
// Whether weights are in buffers of this type; what else we compute in our own way, beside products, is so only then.
bool rys_repack_in_use(void);
// Names the kernels that this processor gets.
const char * rys_kernels_name(void);
#ifdef __cplusplus
}
#endif
