// The recorder behind webgpu_cpp.h: words, and how they reach the host. gpu/executor.ts has the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// Every command is its number and its arguments; 64-bit values take two words, the low one first.
enum rys_gpu_op : uint32_t {
    RYS_GPU_BUFFER_CREATE   = 1,  // id, size (2), usage, whether its result is waited for, n label bytes, label
    RYS_GPU_BUFFER_DESTROY  = 2,  // id
    RYS_GPU_PIPELINE_CREATE = 3,  // id, n bytes of {label, entry point, source}, n constants, {value (2), n bytes of the key}..., texts
    RYS_GPU_PIPELINE_DROP   = 4,  // id
    RYS_GPU_BIND_GROUP      = 5,  // id, pipeline, n entries, {binding, buffer, offset (2), size (2)}...
    RYS_GPU_BIND_GROUP_DROP = 6,  // id
    RYS_GPU_WRITE           = 7,  // buffer, offset (2), n bytes, data
    RYS_GPU_PASS_BEGIN      = 8,
    RYS_GPU_SET_PIPELINE    = 9,  // id
    RYS_GPU_SET_BIND_GROUP  = 10, // id
    RYS_GPU_DISPATCH        = 11, // x, y, z
    RYS_GPU_PASS_END        = 12,
    RYS_GPU_COPY            = 13, // source buffer, offset (2), destination buffer, offset (2), size (2)
    RYS_GPU_SUBMIT          = 14,
    // these end a crossing, and its result is theirs: 0 is failure
    RYS_GPU_READ            = 15, // buffer, offset (2), size (2), address (2)
    RYS_GPU_UPLOAD          = 16, // buffer, offset (2), size (2), address (2): a write that is not copied into the words
    RYS_GPU_FENCE           = 17, // waits till the device has done everything before
};

// What the host says of its device before anything else runs; gpu/device.ts fills it in this order.
struct rys_gpu_facts {
    uint32_t present                               = 0;
    uint32_t shader_f16                            = 0;
    uint32_t subgroups                             = 0;
    uint32_t packed_4x8                            = 0; // dot4I8Packed and the like
    uint32_t subgroup_min_size                     = 0;
    uint32_t subgroup_max_size                     = 0;
    uint32_t vendor_id                             = 0;
    uint32_t device_id                             = 0;
    uint32_t max_compute_invocations_per_workgroup = 0;
    uint32_t max_compute_workgroup_storage_size    = 0; // bytes
    uint32_t max_compute_workgroups_per_dimension  = 0;
    uint32_t min_storage_buffer_offset_alignment   = 0; // bytes
    uint32_t min_uniform_buffer_offset_alignment   = 0; // bytes
    uint32_t immediate                             = 0; // one crossing per call, nothing cached: for the comparison in bench/
    uint64_t max_buffer_size                       = 0; // bytes
    uint64_t max_storage_buffer_binding_size       = 0; // bytes
    char     vendor[32]                            = {};
    char     architecture[64]                      = {};
    char     device[64]                            = {};
    char     description[128]                      = {};
};

struct rys_gpu_constant {
    std::string key;
    double      value;
};

const rys_gpu_facts & rys_gpu_info();
const char *          rys_gpu_error(); // of the last crossing of this thread that failed
bool                  rys_gpu_immediate();

uint32_t rys_gpu_buffer_create(uint64_t size, uint32_t usage, const char * label, size_t n_label); // 0: no room
void     rys_gpu_buffer_destroy(uint32_t id);
uint32_t rys_gpu_pipeline_create(const std::string & source, const std::string & label, const std::string & entry,
                                 const std::vector<rys_gpu_constant> & constants);
void     rys_gpu_pipeline_drop(uint32_t id);

// The bind group of {pipeline, {binding, buffer, offset (2), size (2)}...}; the same one for the same key.
uint32_t rys_gpu_bind_group(const std::vector<uint32_t> & key);

// While an encoder records, no bind group goes that it may have named.
uint64_t rys_gpu_encoder_begin();
void     rys_gpu_encoder_end(uint64_t begin);

// Data is taken at once; offset and size in multiples of 4, inside the buffer, or the call is an error of the device.
void rys_gpu_write(uint32_t buffer, uint64_t offset, const void * data, size_t size);

// Takes an encoder's words; with `now` they cross at once.
void rys_gpu_submit(std::vector<uint32_t> & words, bool now);

bool rys_gpu_read(uint32_t buffer, uint64_t offset, uint64_t size, void * dst);
bool rys_gpu_ok(); // false if the device has failed
