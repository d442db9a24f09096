// The recorder's side of the GPU bridge (gpu/webgpu/rys_gpu.h): one ordered stream of words for all threads, handed to
// the main thread, which owns the device. Encoders record on their own and enter the stream as a whole when submitted.

#include "webgpu/rys_gpu.h"

#include <emscripten.h>
#include <emscripten/proxying.h>
#include <emscripten/threading.h>

#include <atomic>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <unordered_map>

struct rys_gpu_job {
    std::vector<uint32_t> words;
    bool                  waits = false;
    std::atomic<uint32_t> done{ 0 };
    bool                  ok = false;
};

// Executes the words. A job that waits ends in rys_gpu_done, now or later; any other is finished on return.
extern "C" void rys_js_gpu(rys_gpu_job * job, const uint32_t * words, size_t n, bool waits);

namespace {

constexpr uint64_t n_checked_buffer = 1 << 20; // bytes; smaller buffers are made without asking whether there is room
constexpr size_t   n_inline_write   = 1 << 16; // bytes; larger writes cross from where they are
constexpr size_t   n_upload         = 4 << 20; // bytes in one upload
constexpr size_t   n_pending_words  = 1 << 18; // cross when that much was recorded
constexpr uint32_t n_submits_ahead  = 64;      // submits in flight that nobody waits for
constexpr size_t   n_bind_groups    = 16384;   // more are looked through for old ones
constexpr uint64_t n_group_age      = 1024;    // submits after which an unused one is old

struct key_hash {
    size_t operator()(const std::vector<uint32_t> & key) const {
        uint64_t h = 0xcbf29ce484222325ull;
        for (const uint32_t w : key) {
            h = (h ^ w) * 0x100000001b3ull;
            h ^= h >> 29;
        }
        return (size_t) h;
    }
};

struct buffer {
    uint64_t             size;
    std::vector<uint8_t> shadow; // of a small uniform buffer: its writes are one upload per submit
    size_t               dirty_lo = SIZE_MAX;
    size_t               dirty_hi = 0;
};

struct bind_group {
    uint32_t id;
    uint64_t used; // submit number
};

struct recorder {
    std::recursive_mutex                                               mutex; // the main thread may fail while it hands over
    std::vector<uint32_t>                                              words;
    std::unordered_map<uint32_t, buffer>                               buffers;
    std::vector<uint32_t>                                              dirty;
    std::unordered_map<std::vector<uint32_t>, bind_group, key_hash>    groups;
    size_t                                                             max_groups = n_bind_groups;
    std::multiset<uint64_t>                                            open; // submit numbers at which encoders began
    uint32_t                                                           next_id  = 1;
    uint32_t                                                           ahead    = 0;
    uint64_t                                                           submits  = 0;
    uint64_t                                                           crossings = 0;
    std::string                                                        failure; // why the device is gone
};

recorder & rec() {
    static recorder * r = new recorder; // never destroyed: buffers of other statics end after it would
    return *r;
}

rys_gpu_facts            facts;
std::atomic<bool>        failed{ false };
thread_local std::string last_error;

void put64(std::vector<uint32_t> & words, uint64_t v) {
    words.push_back((uint32_t) v);
    words.push_back((uint32_t) (v >> 32));
}

void put_bytes(std::vector<uint32_t> & words, const void * data, size_t n) {
    const size_t at = words.size();
    words.resize(at + (n + 3) / 4);
    if (n > 0) {
        memcpy(words.data() + at, data, n);
    }
}

void fail(const std::string & why) {
    auto & r = rec();
    if (r.failure.empty()) {
        r.failure = why;
    }
    failed = true;
}

void execute(void * arg) {
    auto * job = static_cast<rys_gpu_job *>(arg);
    const bool waits = job->waits; // the other thread deletes a job that it waits for
    rys_js_gpu(job, job->words.data(), job->words.size(), waits);
    if (!waits) {
        delete job;
    }
}

bool on_main() { return emscripten_is_main_runtime_thread(); }

// With the lock held, so that streams cross in the order in which they were cut.
bool hand_over(recorder & r, rys_gpu_job * job) {
    job->words = std::move(r.words);
    r.words.clear();
    r.crossings++;
    if (on_main()) {
        execute(job);
        return true;
    }
    return emscripten_proxy_async(emscripten_proxy_get_system_queue(), emscripten_main_runtime_thread_id(), execute, job);
}

void cross(recorder & r) {
    if (r.words.empty()) {
        return;
    }
    if (failed) {
        r.words.clear();
        return;
    }
    auto * job = new rys_gpu_job;
    if (!hand_over(r, job)) {
        delete job;
        fail("the engine's first thread does not answer");
    }
}

// Ends the recorded words with what was just added and waits for its result.
bool cross_and_wait(std::unique_lock<std::recursive_mutex> & lock) {
    auto & r = rec();
    if (failed) {
        r.words.clear();
        last_error = r.failure;
        return false;
    }
    if (on_main()) { // nobody could answer
        r.words.clear();
        last_error = "a result of the GPU was asked for on the engine's first thread";
        return false;
    }
    rys_gpu_job job;
    job.waits = true;
    if (!hand_over(r, &job)) {
        fail("the engine's first thread does not answer");
    } else {
        r.ahead = 0;
        lock.unlock();
        while (job.done == 0) {
            emscripten_futex_wait((void *) &job.done, 0, INFINITY);
        }
        lock.lock();
    }
    if (!job.ok) {
        last_error = r.failure.empty() ? "the device refused" : r.failure;
    }
    return job.ok;
}

void write_words(recorder & r, uint32_t id, uint64_t offset, const void * data, size_t size) {
    r.words.push_back(RYS_GPU_WRITE);
    r.words.push_back(id);
    put64(r.words, offset);
    r.words.push_back((uint32_t) size);
    put_bytes(r.words, data, size);
}

void write_dirty(recorder & r) {
    for (const uint32_t id : r.dirty) {
        const auto it = r.buffers.find(id);
        if (it == r.buffers.end() || it->second.dirty_hi == 0) {
            continue;
        }
        auto & b = it->second;
        write_words(r, id, b.dirty_lo, b.shadow.data() + b.dirty_lo, b.dirty_hi - b.dirty_lo);
        b.dirty_lo = SIZE_MAX;
        b.dirty_hi = 0;
    }
    r.dirty.clear();
}

template <typename F> void drop_groups(recorder & r, F which) {
    for (auto it = r.groups.begin(); it != r.groups.end();) {
        if (which(it->first, it->second)) {
            r.words.insert(r.words.end(), { RYS_GPU_BIND_GROUP_DROP, it->second.id });
            it = r.groups.erase(it);
        } else {
            ++it;
        }
    }
}

} // namespace

const rys_gpu_facts & rys_gpu_info() { return facts; }

const char * rys_gpu_error() { return last_error.c_str(); }

bool rys_gpu_immediate() { return facts.immediate != 0; }

uint32_t rys_gpu_buffer_create(uint64_t size, uint32_t usage, const char * label, size_t n_label) {
    constexpr uint32_t uniform = 0x40;
    auto & r = rec();
    std::unique_lock<std::recursive_mutex> lock(r.mutex);
    size = (size + 3) / 4 * 4;
    if (size == 0) {
        size = 4;
    }
    if (size > facts.max_buffer_size || failed) {
        return 0;
    }
    const uint32_t id = r.next_id++;
    const bool checked = size >= n_checked_buffer && !on_main();
    if (checked) {
        cross(r); // the answer is this buffer's alone
    }
    r.words.insert(r.words.end(), { RYS_GPU_BUFFER_CREATE, id });
    put64(r.words, size);
    r.words.insert(r.words.end(), { usage, checked, (uint32_t) n_label });
    put_bytes(r.words, label, n_label);
    if (checked && !cross_and_wait(lock)) {
        return 0;
    }
    auto & b = r.buffers[id];
    b.size = size;
    if ((usage & uniform) != 0 && size <= (1 << 20) && !facts.immediate) {
        b.shadow.resize((size_t) size);
    }
    return id;
}

void rys_gpu_buffer_destroy(uint32_t id) {
    auto & r = rec();
    std::lock_guard<std::recursive_mutex> lock(r.mutex);
    if (r.buffers.erase(id) == 0) {
        return;
    }
    drop_groups(r, [&](const std::vector<uint32_t> & key, const bind_group &) {
        for (size_t i = 1; i + 6 <= key.size(); i += 6) {
            if (key[i + 1] == id) {
                return true;
            }
        }
        return false;
    });
    r.words.insert(r.words.end(), { RYS_GPU_BUFFER_DESTROY, id });
    cross(r); // memory comes back now, not with the next command
}

uint32_t rys_gpu_pipeline_create(const std::string & source, const std::string & label, const std::string & entry,
                                 const std::vector<rys_gpu_constant> & constants) {
    auto & r = rec();
    std::lock_guard<std::recursive_mutex> lock(r.mutex);
    const uint32_t id = r.next_id++;
    r.words.insert(r.words.end(), { RYS_GPU_PIPELINE_CREATE, id, (uint32_t) label.size(), (uint32_t) entry.size(),
                                    (uint32_t) source.size(), (uint32_t) constants.size() });
    for (const auto & c : constants) {
        uint64_t bits;
        memcpy(&bits, &c.value, sizeof(bits));
        put64(r.words, bits);
        r.words.push_back((uint32_t) c.key.size());
    }
    put_bytes(r.words, label.data(), label.size());
    put_bytes(r.words, entry.data(), entry.size());
    put_bytes(r.words, source.data(), source.size());
    for (const auto & c : constants) {
        put_bytes(r.words, c.key.data(), c.key.size());
    }
    return id;
}

void rys_gpu_pipeline_drop(uint32_t id) {
    auto & r = rec();
    std::lock_guard<std::recursive_mutex> lock(r.mutex);
    drop_groups(r, [&](const std::vector<uint32_t> & key, const bind_group &) { return key[0] == id; });
    r.words.insert(r.words.end(), { RYS_GPU_PIPELINE_DROP, id });
}

uint32_t rys_gpu_bind_group(const std::vector<uint32_t> & key) {
    auto & r = rec();
    std::lock_guard<std::recursive_mutex> lock(r.mutex);
    const auto it = r.groups.find(key);
    if (it != r.groups.end()) {
        if (!facts.immediate) {
            it->second.used = r.submits;
            return it->second.id;
        }
        r.words.insert(r.words.end(), { RYS_GPU_BIND_GROUP_DROP, it->second.id });
    }
    if (r.groups.size() >= r.max_groups) {
        // Other threads' commands that were not submitted yet may name any group used since they began.
        const uint64_t oldest = r.open.empty() ? r.submits : *r.open.begin();
        drop_groups(r, [&](const std::vector<uint32_t> &, const bind_group & g) {
            return g.used < oldest && g.used + n_group_age < r.submits;
        });
        r.max_groups = std::max(n_bind_groups, r.groups.size() * 5 / 4); // not for every group where all are in use
    }
    const uint32_t id = r.next_id++;
    r.groups[key] = { id, r.submits };
    r.words.insert(r.words.end(), { RYS_GPU_BIND_GROUP, id, key[0], (uint32_t) ((key.size() - 1) / 6) });
    r.words.insert(r.words.end(), key.begin() + 1, key.end());
    if (facts.immediate) {
        cross(r);
    }
    return id;
}

uint64_t rys_gpu_encoder_begin() {
    auto & r = rec();
    std::lock_guard<std::recursive_mutex> lock(r.mutex);
    return *r.open.insert(r.submits);
}

void rys_gpu_encoder_end(uint64_t begin) {
    auto & r = rec();
    std::lock_guard<std::recursive_mutex> lock(r.mutex);
    r.open.erase(r.open.find(begin));
}

void rys_gpu_write(uint32_t id, uint64_t offset, const void * data, size_t size) {
    if (size == 0 || failed) {
        return;
    }
    auto & r = rec();
    std::unique_lock<std::recursive_mutex> lock(r.mutex);
    const auto it = r.buffers.find(id);
    if (it == r.buffers.end() || offset % 4 != 0 || size % 4 != 0 || offset + size > it->second.size) {
        fail("a write of " + std::to_string(size) + " bytes at " + std::to_string(offset) + " does not fit its GPU buffer");
        return;
    }
    auto & b = it->second;
    if (!b.shadow.empty()) {
        if (b.dirty_hi == 0) {
            r.dirty.push_back(id);
        }
        memcpy(b.shadow.data() + offset, data, size);
        b.dirty_lo = std::min(b.dirty_lo, (size_t) offset);
        b.dirty_hi = std::max(b.dirty_hi, (size_t) offset + size);
        return;
    }
    if (size <= n_inline_write || on_main()) {
        write_words(r, id, offset, data, size);
        if (r.words.size() >= n_pending_words || facts.immediate) {
            cross(r);
        }
        return;
    }
    for (size_t at = 0; at < size && !failed; at += n_upload) {
        const size_t n = std::min(n_upload, size - at);
        r.words.insert(r.words.end(), { RYS_GPU_UPLOAD, id });
        put64(r.words, offset + at);
        put64(r.words, n);
        put64(r.words, (uint64_t) (uintptr_t) data + at);
        cross_and_wait(lock);
    }
}

void rys_gpu_submit(std::vector<uint32_t> & words, bool now) {
    auto & r = rec();
    std::unique_lock<std::recursive_mutex> lock(r.mutex);
    write_dirty(r);
    r.words.insert(r.words.end(), words.begin(), words.end());
    words.clear();
    if (facts.immediate) {
        cross(r);
        return;
    }
    r.submits++;
    if (++r.ahead >= n_submits_ahead) {
        r.words.push_back(RYS_GPU_FENCE);
        cross_and_wait(lock);
    } else if (now) {
        cross(r);
    }
}

bool rys_gpu_read(uint32_t id, uint64_t offset, uint64_t size, void * dst) {
    auto & r = rec();
    std::unique_lock<std::recursive_mutex> lock(r.mutex);
    r.words.insert(r.words.end(), { RYS_GPU_READ, id });
    put64(r.words, offset);
    put64(r.words, size);
    put64(r.words, (uint64_t) (uintptr_t) dst);
    return cross_and_wait(lock);
}

bool rys_gpu_ok() {
    if (failed) {
        auto & r = rec();
        std::lock_guard<std::recursive_mutex> lock(r.mutex);
        last_error = r.failure;
    }
    return !failed;
}

extern "C" {

// Where the host writes its facts (rys_gpu_facts) before anything else.
EMSCRIPTEN_KEEPALIVE rys_gpu_facts * rys_gpu_facts_at(void) { return &facts; }

// The answer to a job that waits.
EMSCRIPTEN_KEEPALIVE void rys_gpu_done(rys_gpu_job * job, int32_t ok) {
    job->ok   = ok != 0;
    job->done = 1;
    emscripten_futex_wake((void *) &job->done, 1);
}

// The device is lost or has refused a command: nothing crosses any more.
EMSCRIPTEN_KEEPALIVE void rys_gpu_fail(const char * why) {
    auto & r = rec();
    std::lock_guard<std::recursive_mutex> lock(r.mutex);
    fail(why);
}

// Streams handed over since the start.
EMSCRIPTEN_KEEPALIVE double rys_gpu_crossings(void) {
    auto & r = rec();
    std::lock_guard<std::recursive_mutex> lock(r.mutex);
    return (double) r.crossings;
}

} // extern "C"
