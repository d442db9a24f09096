#pragma once

// Pieces shared by the C ABI's sources. Nothing here blocks the runtime's main thread: that thread serves the host's
// event loop, and every other thread may wait for it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rys {

// What an event means to the host; the numbers stand in src/engine/protocol.ts as well.
enum event_kind : int32_t {
    EVENT_LOG      = 0, // aux = level, data = line
    EVENT_PROGRESS = 1, // aux = per mille of a model that is loaded
    EVENT_HEAD     = 2, // aux = HTTP status, data = content type
    EVENT_CHUNK    = 3, // data = a part of the body
    EVENT_DONE     = 4, // aux = a handle or 0, data = JSON or nothing
    EVENT_ERROR    = 5, // data = message
    EVENT_FATAL    = 6, // data = message; the instance is gone after this
};

// Hands an event to the host; from any thread, in order per thread, never blocks.
void emit(int32_t req, event_kind kind, int32_t aux, std::string data);

// Runs a job on a pooled thread, from any thread. A job that throws ends in EVENT_ERROR for `req`. A `request` never
// waits for other jobs to end.
void run(int32_t req, std::function<void()> job, bool request = false);

// Whether a failed assertion of upstream's on this thread is an exception, which ends its call alone. It is so within
// run()'s jobs but for what they compute; elsewhere it ends the instance.
bool & assertions_throw();

// Error lines logged since the last call on this thread's behalf; newest last.
std::string take_errors();

// Named buffers that upstream reads and writes as files "/rys/mem/<name>".
std::shared_ptr<std::vector<uint8_t>> mem_open(const std::string & name, bool create);
void                                  mem_drop(const std::string & name);

} // namespace rys
