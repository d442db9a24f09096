// Files of the host as FILE*: "/rys/file/<id>" is read at positions through the host, "/rys/mem/<name>" is a buffer.

#include "rys.h"

#include <emscripten.h>
#include <emscripten/proxying.h>
#include <emscripten/threading.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

// Reads `n` bytes at `offset` of the host's file into `dst`, now or later; ends with rys_file_done.
extern "C" void rys_js_read(em_proxying_ctx * ctx, int64_t * result, int32_t id, uint8_t * dst, double n, double offset);

namespace rys {

static std::mutex                 mutex;
static std::map<int32_t, int64_t> host_files; // id -> size in bytes
static std::map<std::string, std::shared_ptr<std::vector<uint8_t>>> mems;

std::shared_ptr<std::vector<uint8_t>> mem_open(const std::string & name, bool create) {
    std::lock_guard<std::mutex> lock(mutex);
    if (create) {
        return mems[name] = std::make_shared<std::vector<uint8_t>>();
    }
    const auto it = mems.find(name);
    return it == mems.end() ? nullptr : it->second;
}

void mem_drop(const std::string & name) {
    std::lock_guard<std::mutex> lock(mutex);
    mems.erase(name);
}

// One stream of either kind.
struct stream {
    int32_t                               id     = 0;
    std::shared_ptr<std::vector<uint8_t>> mem;
    int64_t                               size   = 0;
    int64_t                               offset = 0;
    std::unique_ptr<char[]>               buffer; // musl's setvbuf takes a size only with a buffer

    int64_t length() const { return mem ? (int64_t) mem->size() : size; }
};

struct read_job {
    int32_t   id;
    uint8_t * dst;
    int64_t   n;
    int64_t   offset;
    int64_t   result;
};

static void read_on_main(em_proxying_ctx * ctx, void * arg) {
    auto * job = static_cast<read_job *>(arg);
    rys_js_read(ctx, &job->result, job->id, job->dst, (double) job->n, (double) job->offset);
}

static ssize_t stream_read(void * cookie, char * buf, size_t n) {
    auto * s = static_cast<stream *>(cookie);
    const int64_t left = s->length() - s->offset;
    // one crossing carries at most 16 MiB, so that a source that answers later needs no more at once
    const int64_t want = std::min({ (int64_t) n, left, (int64_t) 1 << 24 });
    if (want <= 0) {
        return 0;
    }
    if (s->mem) {
        memcpy(buf, s->mem->data() + s->offset, (size_t) want);
        s->offset += want;
        return (ssize_t) want;
    }
    read_job job = { s->id, (uint8_t *) buf, want, s->offset, -1 };
    if (!emscripten_proxy_sync_with_ctx(emscripten_proxy_get_system_queue(), emscripten_main_runtime_thread_id(), read_on_main, &job) || job.result <= 0) {
        errno = EIO;
        return -1;
    }
    s->offset += job.result;
    return (ssize_t) job.result;
}

static ssize_t stream_write(void * cookie, const char * buf, size_t n) {
    auto * s = static_cast<stream *>(cookie);
    if (!s->mem) {
        errno = EBADF;
        return -1;
    }
    if (s->mem->size() < (size_t) s->offset + n) {
        s->mem->resize((size_t) s->offset + n);
    }
    memcpy(s->mem->data() + s->offset, buf, n);
    s->offset += (int64_t) n;
    return (ssize_t) n;
}

static int stream_seek(void * cookie, off_t * offset, int whence) {
    auto * s = static_cast<stream *>(cookie);
    const int64_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? s->offset : s->length();
    const int64_t to   = base + *offset;
    if (to < 0) {
        errno = EINVAL;
        return -1;
    }
    *offset = s->offset = to;
    return 0;
}

static int stream_close(void * cookie) {
    delete static_cast<stream *>(cookie);
    return 0;
}

} // namespace rys

// called by ggml_fopen (see its hook)
extern "C" FILE * rys_fopen(const char * fname, const char * mode) {
    using namespace rys;
    auto s = std::make_unique<stream>();
    if (strncmp(fname, "/rys/mem/", 9) == 0) {
        s->mem = mem_open(fname + 9, mode[0] == 'w');
        if (!s->mem) {
            errno = ENOENT;
            return nullptr;
        }
    } else if (strncmp(fname, "/rys/file/", 10) == 0 && mode[0] == 'r') {
        char * rest = nullptr;
        s->id = (int32_t) strtol(fname + 10, &rest, 10);
        int shard = 0;
        int n_shards = 0;
        if (sscanf(rest, "-%d-of-%d.gguf", &shard, &n_shards) == 2) {
            s->id += shard - 1; // upstream derives the names of a split model's other files from the first one's
        }
        std::lock_guard<std::mutex> lock(mutex);
        const auto it = host_files.find(s->id);
        if (it == host_files.end()) {
            errno = ENOENT;
            return nullptr;
        }
        s->size = it->second;
    } else {
        errno = EINVAL;
        return nullptr;
    }
    cookie_io_functions_t io = { stream_read, stream_write, stream_seek, stream_close };
    FILE * file = fopencookie(s.get(), mode, io);
    if (!file) {
        return nullptr;
    }
    if (!s->mem) {
        // A header is thousands of small reads; each crossing costs more than 64 KiB read for nothing.
        constexpr size_t n_buffer = 1 << 16;
        s->buffer.reset(new char[n_buffer]);
        setvbuf(file, s->buffer.get(), _IOFBF, n_buffer);
    }
    s.release();
    return file;
}

extern "C" {

// Makes "/rys/file/<id>" readable.
EMSCRIPTEN_KEEPALIVE void rys_file_add(int32_t id, double size) {
    std::lock_guard<std::mutex> lock(rys::mutex);
    rys::host_files[id] = (int64_t) size;
}

EMSCRIPTEN_KEEPALIVE void rys_file_remove(int32_t id) {
    std::lock_guard<std::mutex> lock(rys::mutex);
    rys::host_files.erase(id);
}

// The host's answer to rys_js_read: bytes read, or -1.
EMSCRIPTEN_KEEPALIVE void rys_file_done(em_proxying_ctx * ctx, int64_t * result, double n) {
    *result = (int64_t) n;
    emscripten_proxy_finish(ctx);
}

// A fresh buffer "/rys/mem/<name>" of n bytes; the host fills it.
EMSCRIPTEN_KEEPALIVE uint8_t * rys_mem_add(const char * name, double n) {
    auto mem = rys::mem_open(name, true);
    mem->resize((size_t) n);
    return mem->data();
}

EMSCRIPTEN_KEEPALIVE double rys_mem_size(const char * name) {
    auto mem = rys::mem_open(name, false);
    return mem ? (double) mem->size() : -1;
}

EMSCRIPTEN_KEEPALIVE uint8_t * rys_mem_data(const char * name) {
    auto mem = rys::mem_open(name, false);
    return mem ? mem->data() : nullptr;
}

EMSCRIPTEN_KEEPALIVE void rys_mem_remove(const char * name) {
    rys::mem_drop(name);
}

} // extern "C"
