// The CPU backend's buffer type for weights that our kernels multiply (see rys-kernels.h).

#pragma once

#include "ggml-backend.h"

ggml_backend_buffer_type_t rys_repack_buffer_type(void);

#ifdef __cplusplus
extern "C" {
#endif
// Names the kernels that this processor gets.
const char * rys_kernels_name(void);
#ifdef __cplusplus
}
#endif
