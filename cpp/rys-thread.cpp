// Threads and events: work leaves the main thread through run(), results come back through emit().

#include "rys.h"

#include "ggml.h"

#include <emscripten.h>
#include <emscripten/proxying.h>
#include <emscripten/threading.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <deque>
#include <mutex>
#include <stdexcept>
#include <thread>

extern "C" void rys_js_event(int32_t req, int32_t kind, int32_t aux, const char * data, size_t n_data);

namespace rys {

struct event {
    int32_t     req;
    event_kind  kind;
    int32_t     aux;
    std::string data;
};

static void deliver(void * arg) {
    std::unique_ptr<event> e(static_cast<event *>(arg));
    rys_js_event(e->req, e->kind, e->aux, e->data.data(), e->data.size());
}

void emit(int32_t req, event_kind kind, int32_t aux, std::string data) {
    auto * e = new event{ req, kind, aux, std::move(data) };
    // The main thread queues as well: an event must not overtake one that another thread sent before.
    if (!emscripten_proxy_async(emscripten_proxy_get_system_queue(), emscripten_main_runtime_thread_id(), deliver, e)) {
        delete e;
    }
}

// A thread costs a Worker of the host, so finished ones wait for the next job. Requests always get one, as they may wait
// for each other's slots and the host limits them; of other jobs a few run at once.
struct pool {
    static constexpr size_t max_others = 12;

    std::mutex                        mutex;
    std::condition_variable           cv;
    std::deque<std::function<void()>> requests;
    std::deque<std::function<void()>> others;
    size_t                            n_others = 0; // running
    size_t                            idle     = 0;
    bool                              closing  = false;

    size_t runnable() const {
        return requests.size() + (n_others < max_others ? std::min(others.size(), max_others - n_others) : 0);
    }

    void loop() {
        std::unique_lock<std::mutex> lock(mutex);
        while (true) {
            idle++;
            cv.wait(lock, [this] { return closing || runnable() > 0; });
            idle--;
            if (runnable() == 0) {
                return;
            }
            const bool other = requests.empty();
            auto & queue = other ? others : requests;
            auto job = std::move(queue.front());
            queue.pop_front();
            n_others += other;
            lock.unlock();
            job();
            job = nullptr;
            lock.lock();
            n_others -= other;
        }
    }

    void add(std::function<void()> job, bool request) {
        std::unique_lock<std::mutex> lock(mutex);
        (request ? requests : others).push_back(std::move(job));
        if (runnable() > idle) {
            std::thread([this] { loop(); }).detach();
        } else {
            cv.notify_one();
        }
    }

    void close() {
        std::lock_guard<std::mutex> lock(mutex);
        closing = true;
        cv.notify_all();
    }
};

static pool & the_pool() {
    static pool * p = new pool; // never destroyed: its threads outlive every static
    return *p;
}

bool & assertions_throw() {
    static thread_local bool value = false;
    return value;
}

void run(int32_t req, std::function<void()> job, bool request) {
    the_pool().add([req, job = std::move(job)] {
        assertions_throw() = true;
        try {
            job();
        } catch (const std::exception & e) {
            emit(req, EVENT_ERROR, 0, e.what());
        } catch (...) {
            emit(req, EVENT_ERROR, 0, "unknown C++ exception");
        }
    }, request);
}

static std::mutex               errors_mutex;
static std::deque<std::string>  errors;

std::string take_errors() {
    std::lock_guard<std::mutex> lock(errors_mutex);
    std::string text;
    for (const auto & line : errors) {
        text += line;
    }
    errors.clear();
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
        text.pop_back();
    }
    return text;
}

} // namespace rys

extern "C" {

// Lets the pool's threads return: the host can end a thread only while it waits for nothing.
EMSCRIPTEN_KEEPALIVE void rys_shutdown(void) {
    rys::the_pool().close();
}

// Upstream's argument parser ends the program at --help and the like (linked with --wrap).
[[noreturn]] void __wrap_exit(int) {
    throw std::invalid_argument("an argument asks the program to end");
}

enum ggml_status __real_ggml_graph_compute(struct ggml_cgraph * cgraph, struct ggml_cplan * cplan);

// A thread that left a computation would be waited for by the others (linked with --wrap).
enum ggml_status __wrap_ggml_graph_compute(struct ggml_cgraph * cgraph, struct ggml_cplan * cplan) {
    const bool throws = rys::assertions_throw();
    rys::assertions_throw() = false;
    const enum ggml_status status = __real_ggml_graph_compute(cgraph, cplan);
    rys::assertions_throw() = throws;
    return status;
}

static std::atomic<int32_t> dead{ 0 };

// Where the host stores 1 when the instance is given up: its threads then end instead of waiting on.
EMSCRIPTEN_KEEPALIVE void * rys_dead_at(void) {
    return &dead;
}

int __real_emscripten_futex_wait(volatile void * addr, uint32_t val, double max_wait_ms);

// Every wait of libc (linked with --wrap). Deno 2.9 cannot end a thread that sleeps in an atomic wait, and a process
// with such a thread never exits; so no thread sleeps for longer than this at once. An instance that aborted needs it.
int __wrap_emscripten_futex_wait(volatile void * addr, uint32_t val, double max_wait_ms) {
    constexpr double slice_ms = 500;
    while (true) {
        const double ms  = max_wait_ms < slice_ms ? max_wait_ms : slice_ms;
        const int    ret = __real_emscripten_futex_wait(addr, val, ms);
        max_wait_ms -= ms;
        if (dead.load(std::memory_order_relaxed) != 0) {
            __builtin_trap();
        }
        if (ret != -ETIMEDOUT || max_wait_ms <= 0) {
            return ret;
        }
    }
}

} // extern "C"

// called by common/log.cpp (see its hook)
void rys_log_add(enum ggml_log_level level, const char * fmt, va_list args) {
    va_list copy;
    va_copy(copy, args);
    const int n = vsnprintf(nullptr, 0, fmt, copy);
    va_end(copy);
    if (n <= 0) {
        return;
    }
    std::string text((size_t) n + 1, '\0');
    vsnprintf(&text[0], text.size(), fmt, args);
    text.resize((size_t) n);

    static thread_local enum ggml_log_level last = GGML_LOG_LEVEL_INFO;
    if (level == GGML_LOG_LEVEL_CONT) {
        level = last;
    }
    last = level;
    if (level == GGML_LOG_LEVEL_ERROR) {
        std::lock_guard<std::mutex> lock(rys::errors_mutex);
        rys::errors.push_back(text);
        while (rys::errors.size() > 16) {
            rys::errors.pop_front();
        }
    }
    rys::emit(0, rys::EVENT_LOG, level, std::move(text));
}
