// The events of OpenAI's /v1/responses and Anthropic's /v1/messages, and what their requests say in other words than a
// chat's. Upstream makes both from the state before each piece of text, without indices, and closes what it opened only
// at the end; here one object per request remembers what is open.

#include "server-chat.h"
#include "server-task.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <set>

namespace {

json event(const std::string & type, json data) {
    json all = {{"type", type}};
    for (const auto & [key, val] : data.items()) {
        all[key] = val;
    }
    return json {{"event", type}, {"data", all}};
}

// what an item or a block is made of
enum class part { none, reasoning, text, call };

part part_of(const common_chat_msg_diff & diff) {
    return !diff.reasoning_content_delta.empty() ? part::reasoning
         : !diff.content_delta.empty()           ? part::text
         : diff.tool_call_index != std::string::npos ? part::call
                                                 : part::none;
}

} // namespace

// One answer in the making.
struct rys_answer {
    virtual ~rys_answer() = default;

    json events = json::array(); // those that nobody has taken yet

    json take() {
        json taken = std::move(events);
        events = json::array();
        return taken;
    }

    void add(const std::vector<common_chat_msg_diff> & diffs) {
        for (const auto & diff : diffs) {
            switch (part_of(diff)) {
                case part::reasoning:
                    begin_part(part::reasoning);
                    write(diff.reasoning_content_delta);
                    break;
                case part::text:
                    begin_part(part::text);
                    write(diff.content_delta);
                    break;
                case part::call:
                    add_call(diff.tool_call_index, diff.tool_call_delta);
                    break;
                case part::none:
                    break;
            }
        }
    }

    void close(bool is_cut) {
        begin_call();
        if (open != part::none) {
            stop(is_cut);
            open = part::none;
        }
    }

  protected:
    part        open = part::none;
    std::string text; // of what is open

    common_chat_tool_call call;                           // the last one
    size_t                call_index = std::string::npos; // among the calls of tools

    virtual void start() = 0;
    virtual void delta(const std::string & piece) = 0;
    virtual void stop(bool is_cut) = 0;

  private:
    bool is_held = false; // the call is not open yet: its name may grow until its arguments begin

    void begin_part(part of) {
        begin_call();
        if (open != of) {
            restart(of);
        }
    }

    void begin_call() {
        if (is_held) {
            is_held = false;
            restart(part::call);
        }
    }

    void restart(part of) {
        if (open != part::none) {
            stop(false);
        }
        open = of;
        text.clear();
        start();
    }

    void write(const std::string & piece) {
        if (!piece.empty()) {
            text += piece;
            delta(piece);
        }
    }

    void add_call(size_t index, const common_chat_tool_call & piece) {
        if (index != call_index) {
            begin_call();
            call       = {};
            call_index = index;
            is_held    = true;
        }
        if (is_held) {
            call.id   = piece.id.empty()   ? call.id   : piece.id;
            call.name = piece.name.empty() ? call.name : piece.name;
        }
        if (is_held && !piece.arguments.empty()) {
            begin_call();
        }
        if (open == part::call) {
            write(piece.arguments);
        }
    }
};

// https://platform.openai.com/docs/api-reference/responses-streaming
struct rys_response : rys_answer {
    json response;

    void begin(const std::string & id, const std::string & model) {
        if (!response.is_null()) {
            return;
        }
        response = json {
            {"id",                 id},
            {"object",             "response"},
            {"created_at",         std::time(0)},
            {"status",             "in_progress"},
            {"completed_at",       nullptr},
            {"error",              nullptr},
            {"incomplete_details", nullptr},
            {"model",              model},
            {"output",             json::array()},
            {"usage",              nullptr},
        };
        send("response.created", {{"response", response}});
        progress();
    }

    void progress() {
        send("response.in_progress", {{"response", response}});
    }

    void end(bool is_cut, const json & usage) {
        close(is_cut);
        response["status"] = is_cut ? "incomplete" : "completed";
        if (is_cut) {
            response["incomplete_details"] = json {{"reason", "max_output_tokens"}};
        } else {
            response["completed_at"] = std::time(0);
        }
        response["usage"] = usage;
        send(is_cut ? "response.incomplete" : "response.completed", {{"response", response}});
    }

  protected:
    void start() override {
        item = json {{"id", id()}, {"type", ""}, {"status", "in_progress"}};
        switch (open) {
            case part::reasoning:
                item["type"]              = "reasoning";
                item["summary"]           = json::array();
                item["content"]           = json::array();
                item["encrypted_content"] = nullptr;
                break;
            case part::text:
                item["type"]    = "message";
                item["role"]    = "assistant";
                item["content"] = json::array();
                break;
            default:
                item["type"]      = "function_call";
                item["call_id"]   = "call_" + call.id;
                item["name"]      = call.name;
                item["arguments"] = "";
                break;
        }
        send("response.output_item.added", {{"item", item}}, true);
        if (open != part::call) {
            send("response.content_part.added", {{"part", content()}}, true, true);
        }
    }

    void delta(const std::string & piece) override {
        json data = {{"delta", piece}};
        if (open == part::text) {
            data["logprobs"] = json::array();
        }
        send(name() + ".delta", data, true, open != part::call);
    }

    void stop(bool is_cut) override {
        if (open == part::call && text.empty() && !is_cut) {
            text = "{}"; // a call without arguments
            delta(text);
        }
        json data = {{open == part::call ? "arguments" : "text", text}};
        if (open == part::text) {
            data["logprobs"] = json::array();
        }
        if (open == part::call) {
            data["name"]      = item.at("name");
            item["arguments"] = text;
        } else {
            item["content"] = json::array({content()});
        }
        send(name() + ".done", data, true, open != part::call);
        if (open != part::call) {
            send("response.content_part.done", {{"part", content()}}, true, true);
        }
        item["status"] = is_cut ? "incomplete" : "completed";
        send("response.output_item.done", {{"item", item}}, true);
        response["output"].push_back(item);
    }

  private:
    json    item;
    int64_t sequence = 0;

    std::string id() const {
        return (open == part::reasoning ? "rs_" : open == part::text ? "msg_" : "fc_") + random_string();
    }

    std::string name() const {
        return open == part::reasoning ? "response.reasoning_text"
             : open == part::text      ? "response.output_text"
                                       : "response.function_call_arguments";
    }

    json content() const {
        if (open == part::reasoning) {
            return json {{"type", "reasoning_text"}, {"text", text}};
        }
        return json {
            {"type",        "output_text"},
            {"annotations", json::array()},
            {"logprobs",    json::array()},
            {"text",        text},
        };
    }

    void send(const std::string & type, json data, bool has_item = false, bool has_content = false) {
        data["sequence_number"] = sequence++;
        if (has_item) {
            data["output_index"] = response.at("output").size();
            if (!data.contains("item")) {
                data["item_id"] = item.at("id");
            }
        }
        if (has_content) {
            data["content_index"] = 0;
        }
        events.push_back(event(type, data));
    }
};

// https://docs.anthropic.com/en/docs/build-with-claude/streaming
struct rys_message : rys_answer {
    bool has_begun = false;

    void begin(const std::string & id, const std::string & model, const json & usage) {
        if (has_begun) {
            return;
        }
        has_begun = true;
        events.push_back(event("message_start", {
            {"message", {
                {"id",            id},
                {"type",          "message"},
                {"role",          "assistant"},
                {"content",       json::array()},
                {"model",         model},
                {"stop_reason",   nullptr},
                {"stop_sequence", nullptr},
                {"usage",         usage},
            }},
        }));
    }

    void end(const std::string & reason, const std::string & stopping_word, const json & usage) {
        close(false);
        events.push_back(event("message_delta", {
            {"delta", {
                {"stop_reason",   reason},
                {"stop_sequence", stopping_word.empty() ? json(nullptr) : json(stopping_word)},
            }},
            {"usage", usage},
        }));
        events.push_back(event("message_stop", json::object()));
    }

  protected:
    void start() override {
        json block;
        switch (open) {
            case part::reasoning:
                block = json {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
                break;
            case part::text:
                block = json {{"type", "text"}, {"text", ""}};
                break;
            default:
                block = json {
                    {"type",  "tool_use"},
                    {"id",    call.id},
                    {"name",  call.name},
                    {"input", json::object()},
                };
                break;
        }
        events.push_back(event("content_block_start", {{"index", index}, {"content_block", block}}));
    }

    void delta(const std::string & piece) override {
        switch (open) {
            case part::reasoning: return change({{"type", "thinking_delta"},   {"thinking", piece}});
            case part::text:      return change({{"type", "text_delta"},       {"text", piece}});
            default:              return change({{"type", "input_json_delta"}, {"partial_json", piece}});
        }
    }

    void stop(bool) override {
        if (open == part::reasoning) {
            change({{"type", "signature_delta"}, {"signature", ""}}); // of a local model: nothing signs
        }
        events.push_back(event("content_block_stop", {{"index", index++}}));
    }

  private:
    int index = 0;

    void change(const json & delta) {
        events.push_back(event("content_block_delta", {{"index", index}, {"delta", delta}}));
    }
};

namespace {

// takes away what the request gave: only what was added is an answer
void strip_prefill(common_chat_msg & msg, const common_chat_msg & prefill) {
    const auto strip = [](std::string & text, const std::string & head) {
        if (text.compare(0, head.size(), head) == 0) {
            text.erase(0, head.size());
        }
    };
    strip(msg.content, prefill.content);
    strip(msg.reasoning_content, prefill.reasoning_content);
}

json message_usage(int32_t n_prompt, int32_t n_cached, int32_t n_decoded) {
    return json {
        {"cache_creation_input_tokens", 0}, // a cache here takes nothing that is paid for
        {"cache_read_input_tokens",     n_cached},
        {"input_tokens",                n_prompt - n_cached},
        {"output_tokens",               n_decoded},
    };
}

template <class T> T & events_of(task_result_state & state) {
    if (!state.rys_events) {
        state.rys_events = std::make_shared<T>();
    }
    return static_cast<T &>(*state.rys_events);
}

} // namespace

json rys_begin_events(server_task_result_cmpl_partial & res, task_result_state & state) {
    if (res.res_type == TASK_RESPONSE_TYPE_OAI_RESP) {
        auto & of = events_of<rys_response>(state);
        const bool is_first = of.response.is_null();
        of.begin(state.oai_resp_id, res.oaicompat_model);
        if (!is_first && res.is_progress) {
            of.progress();
        }
        return of.take();
    }
    if (res.res_type == TASK_RESPONSE_TYPE_ANTHROPIC) {
        auto & of = events_of<rys_message>(state);
        of.begin(res.oaicompat_cmpl_id, res.oaicompat_model,
                message_usage(res.n_prompt_tokens, res.n_prompt_tokens_cache, 0));
        return of.take();
    }
    return json::array();
}

void rys_partial_events(server_task_result_cmpl_partial & res, task_result_state & state) {
    res.rys_out = rys_begin_events(res, state);
    if (res.is_begin || !state.rys_events) {
        return;
    }
    state.rys_events->add(res.oaicompat_msg_diffs);
    res.rys_out.insert(state.rys_events->take());
    if (res.rys_out.empty() || res.res_type != TASK_RESPONSE_TYPE_OAI_RESP) {
        return;
    }
    json & data = res.rys_out.back().at("data");
    if (res.stats.is_set()) {
        data["timings"] = res.stats.to_json();
    }
    if (res.is_progress) {
        data["prompt_progress"] = res.progress.to_json();
    }
}

void rys_final_events(server_task_result_cmpl_final & res, task_result_state & state) {
    strip_prefill(res.oaicompat_msg, state.rys_prefill);
    const bool is_cut = res.stop != STOP_TYPE_WORD && res.stop != STOP_TYPE_EOS;
    if (res.res_type == TASK_RESPONSE_TYPE_OAI_RESP) {
        const std::string & thought = res.oaicompat_msg.reasoning_content;
        const size_t n_thought = thought.empty() || res.rys_vocab == nullptr
            ? 0 : common_tokenize(res.rys_vocab, thought, false, true).size();
        auto & of = events_of<rys_response>(state);
        of.begin(state.oai_resp_id, res.oaicompat_model);
        of.add(res.oaicompat_msg_diffs);
        of.end(is_cut, {
            {"input_tokens",          res.n_prompt_tokens},
            {"input_tokens_details",  {{"cached_tokens", res.n_prompt_tokens_cache}}},
            {"output_tokens",         res.n_decoded},
            {"output_tokens_details", {{"reasoning_tokens", std::min<size_t>(n_thought, std::max(0, res.n_decoded))}}},
            {"total_tokens",          res.n_decoded + res.n_prompt_tokens},
        });
        res.rys_out = res.stream ? of.take() : of.response;
        if (res.stream && res.stats.is_set()) {
            res.rys_out.back().at("data")["timings"] = res.stats.to_json();
        }
    }
    if (res.res_type == TASK_RESPONSE_TYPE_ANTHROPIC && res.stream) {
        auto & of = events_of<rys_message>(state);
        of.begin(res.oaicompat_cmpl_id, res.oaicompat_model,
                message_usage(res.n_prompt_tokens, res.n_prompt_tokens_cache, 0));
        of.add(res.oaicompat_msg_diffs);
        const bool is_text = res.oaicompat_msg.tool_calls.empty() || res.rys_is_unparsed;
        const char * reason = is_cut ? "max_tokens" : is_text ? "end_turn" : "tool_use";
        of.end(reason, res.stopping_word,
                message_usage(res.n_prompt_tokens, res.n_prompt_tokens_cache, res.n_decoded));
        res.rys_out = of.take();
    }
}

json rys_response_error(const json & error) {
    const std::string type = json_value(error, "type", std::string("server_error"));
    const json fields = {
        {"type",    type},
        {"code",    type}, // text here, where llama-server's has the status
        {"message", json_value(error, "message", std::string())},
        {"param",   nullptr},
    };
    json data = fields;
    data["type"]  = "error";
    data["error"] = fields;
    return json {{"event", "error"}, {"data", data}};
}

namespace {

bool is_type(const json & of, const char * type) {
    return of.is_object() && json_value(of, "type", std::string()) == type;
}

// a format of /v1/responses and /v1/messages as a chat's response_format
json chat_format(const json & format) {
    if (is_type(format, "json_schema")) {
        return json {
            {"type",        "json_schema"},
            {"json_schema", {{"schema", json_value(format, "schema", json::object())}}},
        };
    }
    return format;
}

// the text of parts such as {"type": "summary_text", "text": "..."}
std::string text_of(const json & parts) {
    std::string text;
    if (parts.is_array()) {
        for (const auto & part : parts) {
            if (part.is_object()) {
                text += (text.empty() ? "" : "\n") + json_value(part, "text", std::string());
            }
        }
    }
    return text;
}

// an item of a response's input in the form that upstream knows; false: there is nothing in it
bool read_item(json & item) {
    if (!item.is_object()) {
        return true;
    }
    if (json_value(item, "role", std::string()) == "assistant" && !item.contains("type")) {
        item["type"] = "message";
    }
    if (is_type(item, "message") && item.contains("content") && item.at("content").is_array()) {
        for (json & part : item["content"]) {
            if (is_type(part, "refusal")) {
                part = json {{"type", "output_text"}, {"text", json_value(part, "refusal", std::string())}};
            }
        }
    }
    if (is_type(item, "function_call_output") && item.contains("output") && item.at("output").is_array()) {
        for (json & part : item["output"]) {
            if (is_type(part, "output_text")) {
                part["type"] = "input_text";
            }
        }
    }
    for (const char * type : {"function_call", "function_call_output"}) {
        if (is_type(item, type) && json_value(item, "call_id", std::string()).empty()) {
            item["call_id"] = ""; // found by its place among the others
        }
    }
    if (is_type(item, "function_call") && json_value(item, "arguments", json()).is_null()) {
        item["arguments"] = "";
    }
    if (is_type(item, "reasoning")) {
        if (!item.contains("summary")) {
            item["summary"] = json::array();
        }
        std::string text = text_of(json_value(item, "content", json()));
        if (text.empty()) {
            text = text_of(item.at("summary")); // what others tell of theirs
        }
        item["content"] = json::array({json {{"type", "reasoning_text"}, {"text", text}}});
        return !text.empty();
    }
    return true;
}

} // namespace

json rys_response_request(const json & given) {
    json body = json::object();
    for (const auto & [key, val] : given.items()) {
        if (!val.is_null()) {
            body[key] = val;
        }
    }
    if (body.contains("input") && body.at("input").is_array()) {
        json input = json::array();
        for (json item : body.at("input")) {
            if (read_item(item)) {
                input.push_back(item);
            }
        }
        body["input"] = input;
    }
    const json text = json_value(body, "text", json::object());
    if (text.is_object() && text.contains("format") && !body.contains("response_format")) {
        body["response_format"] = chat_format(text.at("format"));
    }
    return body;
}

void rys_message_request(const json & given, json & body) {
    // fields of Anthropic's own, which say something else or nothing in a chat
    static const std::set<std::string> own = {
        "model", "messages", "system", "tools", "tool_choice", "stop_sequences", "max_tokens", "thinking", "metadata",
        "output_config", "output_format", "service_tier", "container", "mcp_servers", "context_management", "betas",
        "cache_control", "inference_geo",
    };
    for (const auto & [key, val] : given.items()) {
        if (own.count(key) == 0 && !body.contains(key) && !val.is_null()) {
            body[key] = val;
        }
    }
    const json choice = json_value(given, "tool_choice", json::object());
    if (is_type(choice, "none")) {
        body["tool_choice"] = "none";
    }
    if (choice.is_object() && json_value(choice, "disable_parallel_tool_use", false)) {
        body["parallel_tool_calls"] = false;
    }
    const json config = json_value(given, "output_config", json::object());
    if (config.is_object() && config.contains("format") && !config.at("format").is_null()) {
        body["response_format"] = chat_format(config.at("format"));
    }
    if (is_type(json_value(given, "thinking", json::object()), "disabled")) {
        json kwargs = json_value(body, "chat_template_kwargs", json::object());
        if (!kwargs.contains("enable_thinking")) {
            kwargs["enable_thinking"] = false;
        }
        body["chat_template_kwargs"] = kwargs;
    }
}
