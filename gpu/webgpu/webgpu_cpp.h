// The part of WebGPU's C++ interface that ggml-webgpu uses, over a recorder: calls become 32-bit words in memory, and
// the host executes them in one crossing per submit (rys_gpu.h; gpu/executor.ts reads the words). Objects are handles
// with a count of references; the host's object goes with the last one. Nothing here waits, except WaitAny for a map
// and CreateBuffer for a large buffer.
#pragma once

#include "rys_gpu.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wgpu {

struct StringView {
    const char * data   = nullptr;
    size_t       length = 0;

    StringView() = default;
    StringView(std::nullptr_t) {}
    StringView(const char * text) : data(text), length(text ? strlen(text) : 0) {}
    StringView(const std::string & text) : data(text.data()), length(text.size()) {}

    operator std::string_view() const { return std::string_view(data ? data : "", length); }
};

// numbers of the standard's JavaScript constants
enum class BufferUsage : uint32_t {
    None         = 0x000,
    MapRead      = 0x001,
    MapWrite     = 0x002,
    CopySrc      = 0x004,
    CopyDst      = 0x008,
    Uniform      = 0x040,
    Storage      = 0x080,
    QueryResolve = 0x200,
};
inline BufferUsage operator|(BufferUsage a, BufferUsage b) { return BufferUsage(uint32_t(a) | uint32_t(b)); }

enum class MapMode : uint32_t { None = 0, Read = 1, Write = 2 };

enum class CallbackMode { WaitAnyOnly, AllowProcessEvents, AllowSpontaneous };
enum class WaitStatus { Success = 1, TimedOut, Error };
enum class MapAsyncStatus { Success = 1, CallbackCancelled, Error, Aborted };
enum class QueueWorkDoneStatus { Success = 1, CallbackCancelled, Error };
enum class RequestAdapterStatus { Success = 1, CallbackCancelled, Unavailable, Error };
enum class RequestDeviceStatus { Success = 1, CallbackCancelled, Error };
enum class DeviceLostReason { Unknown = 1, Destroyed, CallbackCancelled, FailedCreation };
enum class ErrorType { NoError = 1, Validation, OutOfMemory, Internal, Unknown };
enum class FeatureName { ShaderF16, Subgroups, TimestampQuery };
enum class WGSLLanguageFeatureName { Packed4x8IntegerDotProduct };
enum class InstanceFeatureName { TimedWaitAny };

struct Limits {
    uint64_t maxBufferSize                     = 0; // bytes
    uint64_t maxStorageBufferBindingSize       = 0; // bytes
    uint32_t minUniformBufferOffsetAlignment   = 0; // bytes
    uint32_t minStorageBufferOffsetAlignment   = 0; // bytes
    uint32_t maxComputeWorkgroupStorageSize    = 0; // bytes
    uint32_t maxComputeInvocationsPerWorkgroup = 0;
    uint32_t maxComputeWorkgroupsPerDimension  = 0;
};

struct AdapterInfo {
    StringView vendor;
    StringView architecture;
    StringView device;
    StringView description;
    uint32_t   vendorID        = 0;
    uint32_t   deviceID        = 0;
    uint32_t   subgroupMinSize = 0;
    uint32_t   subgroupMaxSize = 0;
};

struct BufferDescriptor {
    StringView  label;
    BufferUsage usage            = BufferUsage::None;
    uint64_t    size             = 0; // bytes
    bool        mappedAtCreation = false;
};

struct ConstantEntry {
    StringView key;
    double     value = 0;
};

struct ShaderSourceWGSL {
    StringView code;
};

struct ShaderModuleDescriptor {
    const ShaderSourceWGSL * nextInChain = nullptr;
    StringView               label;
};

struct InstanceDescriptor {
    size_t                      requiredFeatureCount = 0;
    const InstanceFeatureName * requiredFeatures     = nullptr;
};

struct RequestAdapterOptions {};
struct CommandEncoderDescriptor {};
struct ComputePassDescriptor {};

// Shared ownership of what stands behind a handle.
template <typename Impl> class Handle {
  public:
    Handle() = default;
    Handle(std::nullptr_t) {}

    explicit operator bool() const { return impl != nullptr; }
    bool operator==(std::nullptr_t) const { return impl == nullptr; }
    bool operator!=(std::nullptr_t) const { return impl != nullptr; }

  protected:
    explicit Handle(std::shared_ptr<Impl> i) : impl(std::move(i)) {}
    std::shared_ptr<Impl> impl;
};

// What a wait is for: nothing, or the map of a buffer.
struct Future {
    std::function<bool()> wait;
};

namespace detail {

struct BufferImpl {
    uint32_t              id    = 0;
    uint64_t              size  = 0;
    uint32_t              usage = 0;
    bool                  valid = false;
    std::vector<uint32_t> mapped; // a copy of the mapped range

    ~BufferImpl() {
        if (valid) {
            rys_gpu_buffer_destroy(id);
        }
    }
};

struct PipelineImpl {
    uint32_t id = 0;

    ~PipelineImpl() { rys_gpu_pipeline_drop(id); }
};

struct Commands {
    std::vector<uint32_t> words;
    uint32_t              pipeline = 0; // set in the open pass
    bool                  computes = false;
    const uint64_t        begin    = rys_gpu_encoder_begin(); // what it names stays until its end

    Commands() = default;
    Commands(const Commands &) = delete;
    ~Commands() { rys_gpu_encoder_end(begin); }
};

inline uint32_t lo(uint64_t v) { return (uint32_t) v; }
inline uint32_t hi(uint64_t v) { return (uint32_t) (v >> 32); }

} // namespace detail

class Buffer : public Handle<detail::BufferImpl> {
  public:
    using Handle::Handle;

    uint64_t GetSize() const { return impl->size; }

    void Destroy() {
        if (impl && impl->valid) {
            impl->valid = false;
            rys_gpu_buffer_destroy(impl->id);
        }
    }

    // The range is copied to where GetConstMappedRange finds it when the future is waited for.
    template <typename F> Future MapAsync(MapMode, size_t offset, size_t size, CallbackMode, F callback) {
        return { [buffer = impl, offset, size, callback]() mutable {
            const bool fits = buffer && buffer->valid && offset % 4 == 0 && size % 4 == 0 && offset + size <= buffer->size;
            bool       ok   = false;
            if (fits) {
                buffer->mapped.resize(size / 4);
                ok = size == 0 || rys_gpu_read(buffer->id, offset, size, buffer->mapped.data());
            }
            callback(ok ? MapAsyncStatus::Success : MapAsyncStatus::Error, StringView(ok ? "" : rys_gpu_error()));
            return ok;
        } };
    }

    const void * GetConstMappedRange(size_t = 0, size_t = SIZE_MAX) const { return impl->mapped.data(); }

    void Unmap() { impl->mapped.clear(); }

    uint32_t id() const { return impl ? impl->id : 0; }
    bool     valid() const { return impl && impl->valid; }
    uint32_t usage() const { return impl->usage; }

  private:
    friend class Device;
};

struct BindGroupLayout {
    uint32_t pipeline = 0;
};

struct BindGroupEntry {
    uint32_t binding = 0;
    Buffer   buffer;
    uint64_t offset = 0; // bytes
    uint64_t size   = 0; // bytes
};

struct BindGroupDescriptor {
    StringView             label;
    BindGroupLayout        layout;
    size_t                 entryCount = 0;
    const BindGroupEntry * entries    = nullptr;
};

class BindGroup {
  public:
    BindGroup() = default;

  private:
    friend class Device;
    friend class ComputePassEncoder;
    uint32_t id = 0;
};

class ShaderModule : public Handle<const std::string> {
  public:
    using Handle::Handle;

  private:
    friend class Device;
};

struct ComputeState {
    ShaderModule          module;
    StringView            entryPoint;
    size_t                constantCount = 0;
    const ConstantEntry * constants     = nullptr;
};

struct ComputePipelineDescriptor {
    StringView     label;
    std::nullptr_t layout = nullptr; // always derived from the shader
    ComputeState   compute;
};

class ComputePipeline : public Handle<detail::PipelineImpl> {
  public:
    using Handle::Handle;

    BindGroupLayout GetBindGroupLayout(uint32_t) const { return { impl->id }; }

  private:
    friend class Device;
    friend class ComputePassEncoder;
};

class ComputePassEncoder : public Handle<detail::Commands> {
  public:
    using Handle::Handle;

    void SetPipeline(const ComputePipeline & pipeline) {
        if (impl->pipeline != pipeline.impl->id) {
            impl->pipeline = pipeline.impl->id;
            push({ RYS_GPU_SET_PIPELINE, impl->pipeline });
        }
    }

    void SetBindGroup(uint32_t, const BindGroup & group) { push({ RYS_GPU_SET_BIND_GROUP, group.id }); }

    void DispatchWorkgroups(uint32_t x, uint32_t y = 1, uint32_t z = 1) {
        impl->computes = true;
        push({ RYS_GPU_DISPATCH, x, y, z });
    }

    void End() {
        impl->pipeline = 0;
        push({ RYS_GPU_PASS_END });
    }

  private:
    friend class CommandEncoder;
    void push(std::initializer_list<uint32_t> words) {
        impl->words.insert(impl->words.end(), words);
        if (rys_gpu_immediate()) {
            rys_gpu_submit(impl->words, false);
        }
    }
};

class CommandBuffer : public Handle<detail::Commands> {
  public:
    using Handle::Handle;

  private:
    friend class CommandEncoder;
    friend class Queue;
};

class CommandEncoder : public Handle<detail::Commands> {
  public:
    using Handle::Handle;

    ComputePassEncoder BeginComputePass(const ComputePassDescriptor * = nullptr) {
        impl->words.push_back(RYS_GPU_PASS_BEGIN);
        ComputePassEncoder pass;
        pass.impl = impl;
        return pass;
    }

    void CopyBufferToBuffer(const Buffer & src, uint64_t src_offset, const Buffer & dst, uint64_t dst_offset, uint64_t size) {
        if (size == 0) {
            return;
        }
        using namespace detail;
        impl->words.insert(impl->words.end(), { RYS_GPU_COPY, src.id(), lo(src_offset), hi(src_offset), dst.id(),
                                                lo(dst_offset), hi(dst_offset), lo(size), hi(size) });
    }

    CommandBuffer Finish() {
        CommandBuffer commands;
        commands.impl = std::move(impl);
        return commands;
    }

  private:
    friend class Device;
};

class Queue {
  public:
    Queue() = default;
    Queue(std::nullptr_t) {}

    void Submit(size_t n, const CommandBuffer * commands) {
        for (size_t i = 0; i < n; i++) {
            auto & words = commands[i].impl->words;
            words.push_back(RYS_GPU_SUBMIT);
            // a copy alone waits for the read that follows, in one crossing
            rys_gpu_submit(words, commands[i].impl->computes);
        }
    }

    void WriteBuffer(const Buffer & buffer, uint64_t offset, const void * data, size_t size) {
        if (buffer.valid()) {
            rys_gpu_write(buffer.id(), offset, data, size);
        }
    }

    // The queue runs in order and every result is read through a map, so nobody needs to wait for this, and what is
    // recorded can stay so until the next submit or read. See rys_gpu_submit for what bounds the work in flight.
    template <typename F> Future OnSubmittedWorkDone(CallbackMode, F callback) {
        return { [callback]() mutable {
            const bool ok = rys_gpu_ok();
            callback(ok ? QueueWorkDoneStatus::Success : QueueWorkDoneStatus::Error, StringView(ok ? "" : rys_gpu_error()));
            return ok;
        } };
    }
};

struct DeviceDescriptor;

class Device {
  public:
    Device() = default;
    Device(std::nullptr_t) {}

    explicit operator bool() const { return there; }
    bool operator==(std::nullptr_t) const { return !there; }
    bool operator!=(std::nullptr_t) const { return there; }

    Queue GetQueue() const { return {}; }

    // Without a buffer behind it (see valid()) where the device has no room.
    Buffer CreateBuffer(const BufferDescriptor * desc) const {
        auto impl   = std::make_shared<detail::BufferImpl>();
        impl->size  = desc->size;
        impl->usage = (uint32_t) desc->usage;
        impl->id    = rys_gpu_buffer_create(desc->size, impl->usage, desc->label.data, desc->label.length);
        impl->valid = impl->id != 0;
        Buffer buffer;
        buffer.impl = std::move(impl);
        return buffer;
    }

    ShaderModule CreateShaderModule(const ShaderModuleDescriptor * desc) const {
        ShaderModule module;
        module.impl = std::make_shared<const std::string>(desc->nextInChain->code);
        return module;
    }

    ComputePipeline CreateComputePipeline(const ComputePipelineDescriptor * desc) const {
        const auto & compute = desc->compute;
        std::vector<rys_gpu_constant> constants(compute.constantCount);
        for (size_t i = 0; i < constants.size(); i++) {
            constants[i] = { std::string(compute.constants[i].key), compute.constants[i].value };
        }
        ComputePipeline pipeline;
        pipeline.impl     = std::make_shared<detail::PipelineImpl>();
        pipeline.impl->id = rys_gpu_pipeline_create(*compute.module.impl, std::string(desc->label),
                                                    std::string(compute.entryPoint), constants);
        return pipeline;
    }

    BindGroup CreateBindGroup(const BindGroupDescriptor * desc) const {
        std::vector<uint32_t> key = { desc->layout.pipeline };
        key.reserve(1 + 6 * desc->entryCount);
        for (size_t i = 0; i < desc->entryCount; i++) {
            const auto & e = desc->entries[i];
            key.insert(key.end(), { e.binding, e.buffer.id(), detail::lo(e.offset), detail::hi(e.offset),
                                    detail::lo(e.size), detail::hi(e.size) });
        }
        BindGroup group;
        group.id = rys_gpu_bind_group(key);
        return group;
    }

    CommandEncoder CreateCommandEncoder(const CommandEncoderDescriptor * = nullptr) const {
        CommandEncoder encoder;
        encoder.impl = std::make_shared<detail::Commands>();
        return encoder;
    }

  private:
    friend class Adapter;
    bool there = false;
};

struct DeviceDescriptor {
    StringView          label;
    size_t              requiredFeatureCount = 0;
    const FeatureName * requiredFeatures     = nullptr;
    const Limits *      requiredLimits       = nullptr;

    // The host hears of both, and ends the instance with the device's message.
    template <typename F> void SetDeviceLostCallback(CallbackMode, F) {}
    template <typename F> void SetUncapturedErrorCallback(F) {}
};

// The host has chosen the adapter and made the device before the first call.
class Adapter {
  public:
    Adapter() = default;
    Adapter(std::nullptr_t) {}

    bool operator==(std::nullptr_t) const { return !there; }
    bool operator!=(std::nullptr_t) const { return there; }

    bool HasFeature(FeatureName feature) const {
        const auto & info = rys_gpu_info();
        return feature == FeatureName::ShaderF16 ? info.shader_f16 != 0 : feature == FeatureName::Subgroups && info.subgroups != 0;
    }

    void GetLimits(Limits * limits) const {
        const auto & info = rys_gpu_info();
        limits->maxBufferSize                     = info.max_buffer_size;
        limits->maxStorageBufferBindingSize       = info.max_storage_buffer_binding_size;
        limits->minUniformBufferOffsetAlignment   = info.min_uniform_buffer_offset_alignment;
        limits->minStorageBufferOffsetAlignment   = info.min_storage_buffer_offset_alignment;
        limits->maxComputeWorkgroupStorageSize    = info.max_compute_workgroup_storage_size;
        limits->maxComputeInvocationsPerWorkgroup = info.max_compute_invocations_per_workgroup;
        limits->maxComputeWorkgroupsPerDimension  = info.max_compute_workgroups_per_dimension;
    }

    void GetInfo(AdapterInfo * out) const {
        const auto & info    = rys_gpu_info();
        out->vendor          = info.vendor;
        out->architecture    = info.architecture;
        out->device          = info.device;
        out->description     = info.description;
        out->vendorID        = info.vendor_id;
        out->deviceID        = info.device_id;
        out->subgroupMinSize = info.subgroup_min_size;
        out->subgroupMaxSize = info.subgroup_max_size;
    }

    template <typename F> Future RequestDevice(const DeviceDescriptor *, CallbackMode, F callback) const {
        Device device;
        device.there = there;
        callback(there ? RequestDeviceStatus::Success : RequestDeviceStatus::Error, device, StringView(there ? "" : "no adapter"));
        return {};
    }

  private:
    friend class Instance;
    bool there = false;
};

class Instance {
  public:
    Instance() = default;
    Instance(std::nullptr_t) {}

    bool operator==(std::nullptr_t) const { return !there; }
    bool operator!=(std::nullptr_t) const { return there; }

    bool HasWGSLLanguageFeature(WGSLLanguageFeatureName) const { return rys_gpu_info().packed_4x8 != 0; }

    template <typename F> Future RequestAdapter(const RequestAdapterOptions *, CallbackMode, F callback) const {
        Adapter adapter;
        adapter.there = rys_gpu_info().present != 0;
        if (adapter.there) { // its absence is no error: the host has said why
            callback(RequestAdapterStatus::Success, adapter, StringView());
        }
        return {};
    }

    WaitStatus WaitAny(const Future & future, uint64_t) const {
        if (future.wait) {
            future.wait(); // tells its callback how it went
        }
        return WaitStatus::Success;
    }

  private:
    friend Instance CreateInstance(const InstanceDescriptor *);
    bool there = false;
};

inline Instance CreateInstance(const InstanceDescriptor * = nullptr) {
    Instance instance;
    instance.there = true;
    return instance;
}

} // namespace wgpu
