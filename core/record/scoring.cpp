// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/record/scoring.h"

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/ponder/engine/no_numbers.h"
#include "core/record/batches.h"
#include "core/record/kept_signals.h"
#include "core/record/run_recording.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace ponderscope {

/// A request of one line, and the results for its answer.
struct ScoredRequest {
    enum class Kind : std::uint8_t { loglikelihood, rolling, generate };
    nlohmann::json id;
    std::string error; ///< empty: none
    std::int64_t line = 0;
    std::int64_t number = 0; ///< number of its sequence in the run
    Kind kind = Kind::loglikelihood;
    std::shared_ptr<SequenceInput> sequence = std::make_shared<SequenceInput>();
    std::int64_t scored_from = 0; ///< the first token of the continuation
    std::string label = {};       ///< the request's label
    std::vector<WindowSpan> spans = {};
    std::vector<WindowResult> results = {}; ///< one for each of `spans`
    // generate_until:
    std::vector<std::string> until = {};
    std::int64_t max_tokens = 0;
    GenerateOptions how = {};
    std::string generated = {};
};

namespace {

using Kind = ScoredRequest::Kind;

/// Whether Python's str.rstrip() removes the character.
bool is_white(char32_t code) {
    return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
           code == 0x202F || code == 0x205F || code == 0x3000;
}

/// The offset at which the white space at the end of a text begins.
std::size_t end_without_white_space(std::string_view text) {
    std::size_t end = 0;
    for (std::size_t at = 0; at < text.size();) {
        const Utf8Character character = utf8_at(text, at);
        at += character.bytes;
        end = is_white(character.code) ? end : at;
    }
    return end;
}

std::vector<std::int32_t> ids_of_json(const JsonObject& object, const char* key, std::int64_t vocabulary) {
    std::vector<std::int32_t> ids;
    for (const nlohmann::json& id : object.required_array(key)) {
        if (!id.is_number_integer() || id < 0 || id >= vocabulary) {
            object.fail(key, "token ids of at least 0 and below " + std::to_string(vocabulary));
        }
        ids.push_back(id.get<std::int32_t>());
    }
    return ids;
}

/// Windows of at most \p window tokens that together read out \p tokens tokens. The target of a window's last
/// token may be outside of the window. \p last: includes the last token, which has no target.
std::vector<WindowSpan> scoring_windows(std::int64_t tokens, std::int64_t window, bool last) {
    std::vector<WindowSpan> spans;
    if (tokens <= window) {
        const std::int64_t rows = last ? tokens : tokens - 1;
        return {{0, rows, 0, rows}};
    }
    for (std::int64_t done = 0; done < tokens - 1;) {
        const std::int64_t end = std::min(done + window, tokens - 1);
        spans.push_back({end - window, end, done, end});
        done = end;
    }
    if (last) {
        spans.push_back({tokens - window, tokens, tokens - 1, tokens});
    }
    return spans;
}

} // namespace

/// The run that records the requests. It begins with the first request.
class RequestScorer::Recording {
public:
    Recording(const RequestScorer& scorer, TraceWriter& writer) : scorer_(scorer), writer_(writer) {}

    void append(const ScoredRequest& request, std::vector<WindowResult> results) {
        const RecordOptions& options = scorer_.options_.record;
        if (!appender_) {
            const WindowShape shape{scorer_.window_, scorer_.window_};
            RunInfo info = describe_run(scorer_.engine_, scorer_.checkpoint_, nullptr, scorer_.tokenizer_,
                                        options, shape, {}, {});
            run_ = writer_.begin_run(std::move(info),
                                     kept_signals(scorer_.engine_.signals(options.level), options.kept));
            appender_.emplace(writer_, scorer_.tokenizer_, options, 0, std::nullopt);
        }
        const SequenceInput& sequence = *request.sequence;
        sequence.text.empty() ? hash_.update(std::as_bytes(std::span(sequence.ids)))
                              : hash_.update(sequence.text);
        for (std::size_t i = 0; i < results.size(); ++i) {
            appender_->append({request.sequence, request.number, request.number, request.spans[i]},
                              std::move(results[i]));
        }
    }

    std::int64_t finish(bool complete) {
        if (appender_) {
            const double seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
            writer_.put_text_digest(hash_.finish_hex());
            complete ? writer_.end_run(seconds) : writer_.leave_run(seconds);
        }
        writer_.finish();
        return run_;
    }

private:
    const RequestScorer& scorer_;
    TraceWriter& writer_;
    std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
    std::optional<Appender> appender_;
    Sha256 hash_;
    std::int64_t run_ = 0;
};

RequestScorer::RequestScorer(const Engine& engine, const Checkpoint& checkpoint, const Tokenizer* tokenizer,
                             Options options, TraceWriter* writer)
    : engine_(engine), checkpoint_(checkpoint), tokenizer_(tokenizer), options_(std::move(options)) {
    const std::int64_t wanted =
        options_.record.context > 0 ? options_.record.context : engine.config().max_positions;
    window_ = resolve_windows(engine.config(), wanted, wanted).context;
    if (writer != nullptr) {
        recording_ = std::make_unique<Recording>(*this, *writer);
    } else {
        options_.record.level = RecordLevel::nll;
    }
}

RequestScorer::~RequestScorer() = default;

std::int32_t RequestScorer::prefix_token() const {
    const ModelConfig& config = checkpoint_.config;
    if (tokenizer_ != nullptr) {
        for (const auto& token : {tokenizer_->bos_token(), tokenizer_->eos_token()}) {
            if (token) {
                return *token;
            }
        }
    }
    if (config.bos_token_id || !config.eos_token_ids.empty()) {
        return static_cast<std::int32_t>(
            config.bos_token_id.value_or(config.eos_token_ids.empty() ? 0 : config.eos_token_ids.front()));
    }
    throw InputError(ErrorId::text_empty, "An empty context needs a start or an end token, and neither the "
                                          "tokenizer nor config.json names such a token. Give a context.");
}

/// Encodes \p text into the sequence. Tokens after the first \p context bytes are scored. \p adds: adds the
/// start token, as for any text.
void RequestScorer::put_text(ScoredRequest& request, const std::string& text, std::size_t context,
                             bool adds) const {
    if (tokenizer_ == nullptr) {
        throw InputError(ErrorId::text_tokenizer,
                         "The request has a text, and the checkpoint has no tokenizer. Give token ids.");
    }
    const auto encode = [&](std::string_view part) {
        TextReading reading = options_.reading;
        if (!adds) {
            reading.bos = TextReading::Bos::never;
        }
        if (const auto start = tokenizer_->bos_token(); reading.bos == TextReading::Bos::automatic && start &&
                                                        part.starts_with(tokenizer_->token_bytes(*start))) {
            reading.bos = TextReading::Bos::never; // the text begins with a start token already
        }
        return reading.encode(*tokenizer_, part);
    };
    Encoding whole = encode(text);
    tokenizer_->require_vocabulary(checkpoint_.config.vocab_size, whole);
    if (context > 0) {
        // As in the harness, the context gets the tokens of its own encoding, even if a token of the whole
        // text crosses its end.
        const Encoding alone = encode(std::string_view(text).substr(0, context));
        request.scored_from = static_cast<std::int64_t>(alone.ids.size());
        const std::size_t replaced = std::min(alone.ids.size(), whole.ids.size());
        std::copy_n(alone.ids.begin(), replaced, whole.ids.begin());
        std::copy_n(alone.begin.begin(), replaced, whole.begin.begin());
        std::copy_n(alone.end.begin(), replaced, whole.end.begin());
        if (replaced < whole.ids.size()) { // the next token begins at the end of the context
            whole.begin[replaced] = context;
            whole.end[replaced] = std::max<std::uint64_t>(whole.end[replaced], context);
        }
    }
    request.sequence->text = text;
    request.sequence->set_tokens(std::move(whole));
}

/// Inserts the start token at the beginning.
void put_prefix(ScoredRequest& request, std::int32_t token) {
    SequenceInput& sequence = *request.sequence;
    sequence.ids.insert(sequence.ids.begin(), token);
    if (!sequence.text.empty()) {
        sequence.begin.insert(sequence.begin.begin(), 0);
        sequence.end.insert(sequence.end.begin(), 0);
    }
}

/// Removes tokens on the left until \p tokens remain.
void RequestScorer::keep_last(ScoredRequest& request, std::int64_t tokens) const {
    SequenceInput& sequence = *request.sequence;
    const std::int64_t cut = sequence.length() - tokens;
    if (cut <= 0) {
        return;
    }
    sequence.ids.erase(sequence.ids.begin(), sequence.ids.begin() + cut);
    request.scored_from -= cut;
    if (sequence.text.empty()) {
        return;
    }
    sequence.begin.erase(sequence.begin.begin(), sequence.begin.begin() + cut);
    sequence.end.erase(sequence.end.begin(), sequence.end.begin() + cut);
    // Remove a character whose first bytes were cut; its remaining tokens get empty spans.
    std::uint64_t first = sequence.begin.front();
    while (first < sequence.text.size() &&
           (static_cast<unsigned char>(sequence.text[first]) & 0xC0) == 0x80) {
        ++first;
    }
    sequence.text.erase(0, first);
    for (std::vector<std::uint64_t>* side : {&sequence.begin, &sequence.end}) {
        for (std::uint64_t& place : *side) {
            place -= std::min(place, first);
        }
    }
}

void RequestScorer::read_pair(ScoredRequest& request, const nlohmann::json& context,
                              const nlohmann::json& continuation) const {
    SequenceInput& sequence = *request.sequence;
    if (context.is_string() && continuation.is_string()) {
        const auto& before = context.get_ref<const std::string&>();
        const auto& after = continuation.get_ref<const std::string&>();
        put_text(request, before + after, end_without_white_space(before), !before.empty());
    }
    if (request.scored_from == 0) { // an empty context
        if (sequence.ids.empty() || sequence.ids.front() != prefix_token()) {
            put_prefix(request, prefix_token());
        }
        request.scored_from = 1;
    }
    const std::int64_t asked = sequence.length() - request.scored_from;
    if (asked <= 0) {
        throw InputError(ErrorId::text_empty,
                         "The continuation is empty: expected at least one token; correct the request.");
    }
    if (asked > window_) {
        throw InputError(ErrorId::text_long, "The continuation has " + std::to_string(asked) +
                                                 " tokens: expected at most " + std::to_string(window_) +
                                                 " (the window). Shorten the continuation.");
    }
    keep_last(request, window_ + 1);
}

ScoredRequest RequestScorer::read(const std::string& line, std::int64_t number) const {
    ScoredRequest request;
    request.line = number;
    request.id = number;
    try {
        const std::string name = "line " + std::to_string(number);
        const nlohmann::json document = parse_json(line, name, {.remedy = "correct the request"});
        const JsonObject object(document, name, {}, "correct the request");
        if (document.contains("id")) {
            request.id = document["id"];
        }
        object.allow_only({"id", "type", "context", "continuation", "text", "until", "max_tokens",
                           "temperature", "top_k", "top_p", "seed", "group", "label", "title"});
        const std::string type = object.required_text("type");
        SequenceInput& sequence = *request.sequence;
        sequence.group = object.text("group").value_or("");
        request.label = object.text("label").value_or("");
        const std::int64_t vocabulary = checkpoint_.config.vocab_size;
        const auto is_ids = [&](const char* key) {
            return object.find(key) != nullptr && object.find(key)->is_array();
        };
        if (type == "loglikelihood") {
            if (is_ids("context") || is_ids("continuation")) {
                sequence.ids = ids_of_json(object, "context", vocabulary);
                request.scored_from = sequence.length();
                const std::vector<std::int32_t> more = ids_of_json(object, "continuation", vocabulary);
                sequence.ids.insert(sequence.ids.end(), more.begin(), more.end());
                read_pair(request, {}, {});
            } else {
                read_pair(request, object.required_text("context"), object.required_text("continuation"));
            }
        } else if (type == "loglikelihood_rolling") {
            request.kind = Kind::rolling;
            if (is_ids("text")) {
                sequence.ids = ids_of_json(object, "text", vocabulary);
            } else {
                put_text(request, object.required_text("text"));
            }
            if (sequence.ids.empty()) {
                throw InputError(ErrorId::text_empty,
                                 "The text is empty: expected at least one token; correct the request.");
            }
            put_prefix(request, prefix_token());
            request.scored_from = 1;
        } else if (type == "generate_until") {
            request.kind = Kind::generate;
            request.max_tokens = object.integer("max_tokens", 1).value_or(256);
            request.how.temperature = object.number("temperature").value_or(0);
            request.how.top_k = object.integer("top_k", 0).value_or(0);
            request.how.top_p = object.number("top_p").value_or(1);
            request.how.seed = static_cast<std::uint64_t>(object.integer("seed", 0).value_or(0));
            if (!(request.how.temperature >= 0)) {
                object.fail("temperature", "0 (greedy) or more");
            }
            if (const nlohmann::json* until = object.array("until")) {
                for (const nlohmann::json& text : *until) {
                    if (!text.is_string()) {
                        object.fail("until", "a list of texts");
                    }
                    if (!text.get_ref<const std::string&>().empty()) {
                        request.until.push_back(text);
                    }
                }
            }
            if (is_ids("context")) {
                sequence.ids = ids_of_json(object, "context", vocabulary);
            } else {
                put_text(request, object.required_text("context"));
            }
            if (sequence.ids.empty()) {
                put_prefix(request, prefix_token());
            }
            if (window_ <= request.max_tokens) {
                object.fail("max_tokens",
                            "less than " + std::to_string(window_) +
                                " (the window), to leave room for a context,",
                            "lower it");
            }
            keep_last(request, window_ - request.max_tokens);
            request.scored_from = sequence.length();
            sequence.planned_length = sequence.length() + request.max_tokens;
        } else {
            object.fail("type", "loglikelihood, loglikelihood_rolling or generate_until");
        }
        sequence.title = object.text("title").value_or(
            sequence.group.empty() ? printable(sequence.text, 40)
                                   : sequence.group + (request.label.empty() ? "" : ": " + request.label));
    } catch (const InputError& wrong) {
        request.error = wrong.what();
    }
    return request;
}

void RequestScorer::generate(std::span<ScoredRequest> requests, const std::stop_token& stop) const {
    using How = std::tuple<std::int64_t, double, std::int64_t, double, std::uint64_t>;
    std::map<How, std::vector<ScoredRequest*>> alike;
    for (ScoredRequest& request : requests) {
        if (request.kind == Kind::generate && request.error.empty()) {
            const GenerateOptions& how = request.how;
            alike[{request.max_tokens, how.temperature, how.top_k, how.top_p, how.seed}].push_back(&request);
        }
    }
    const auto text_of = [&](std::span<const std::int32_t> ids) {
        return tokenizer_ != nullptr ? tokenizer_->decode(ids, true) : std::string();
    };
    const auto first_stop = [](const std::string& text, const std::vector<std::string>& until) {
        std::size_t first = std::string::npos;
        for (const std::string& one : until) {
            first = std::min(first, text.find(one));
        }
        return first;
    };
    for (auto& [key, list] : alike) {
        const std::vector<ScoredRequest*>& group = list;
        const auto submit = [&](std::size_t begin, std::size_t end) {
            GenerateOptions how = group[begin]->how;
            how.max_new_tokens = group[begin]->max_tokens;
            how.stop_ids = checkpoint_.config.eos_token_ids;
            how.stop = stop;
            std::vector<std::vector<std::int32_t>> prompts;
            for (std::size_t i = begin; i < end; ++i) {
                prompts.push_back(group[i]->sequence->ids);
                how.numbers.push_back(group[i]->number);
            }
            if (tokenizer_ != nullptr) {
                how.is_finished = [&, begin](std::size_t prompt, std::span<const std::int32_t> fresh) {
                    const std::vector<std::string>& until = group[begin + prompt]->until;
                    return !until.empty() && first_stop(text_of(fresh), until) != std::string::npos;
                };
            }
            return engine_.generate(prompts, how);
        };
        const auto collect = [&](std::vector<std::vector<std::int32_t>> fresh, std::size_t begin,
                                 std::size_t) {
            for (std::size_t i = 0; i < fresh.size(); ++i) {
                ScoredRequest& request = *group[begin + i];
                SequenceInput& sequence = *request.sequence;
                std::string text = text_of(fresh[i]);
                request.generated = text.substr(0, first_stop(text, request.until));
                sequence.ids.insert(sequence.ids.end(), fresh[i].begin(), fresh[i].end());
                if (tokenizer_ != nullptr) {
                    attach_decoded_text(sequence, *tokenizer_);
                }
            }
        };
        run_in_batches(group.size(),
                       static_cast<std::size_t>(std::max<std::int64_t>(options_.record.batch, 1)), stop,
                       submit, collect);
    }
}

void RequestScorer::score(std::span<ScoredRequest> requests, const std::stop_token& stop) const {
    struct Part {
        ScoredRequest* request;
        std::size_t span;
    };
    std::vector<Part> parts;
    for (ScoredRequest& request : requests) {
        if (!request.error.empty()) {
            continue;
        }
        request.spans = scoring_windows(request.sequence->length(), window_, recording_ != nullptr);
        request.results.resize(request.spans.size());
        for (std::size_t i = 0; i < request.spans.size(); ++i) {
            parts.push_back({&request, i});
        }
    }
    const auto ids_of = [](const Part& part) {
        return part.request->sequence->ids_of(part.request->spans[part.span]);
    };
    // Make windows with a common beginning neighbours, for Engine::score_sharing.
    std::stable_sort(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
        const auto one = ids_of(a);
        const auto other = ids_of(b);
        return std::lexicographical_compare(one.begin(), one.end(), other.begin(), other.end());
    });
    const auto submit = [&](std::size_t begin, std::size_t end) {
        std::vector<Window> windows;
        for (std::size_t i = begin; i < end; ++i) {
            const ScoredRequest& request = *parts[i].request;
            const SequenceInput& sequence = *request.sequence;
            const WindowSpan& span = request.spans[parts[i].span];
            const std::int64_t from = recording_ ? 0 : request.scored_from - 1;
            Window window = sequence.window(span, request.number);
            window.report_begin = std::min(std::max(span.report_begin, from) - span.begin, window.report_end);
            if (span.end < sequence.length()) {
                window.next = sequence.ids[static_cast<std::size_t>(span.end)];
            }
            windows.push_back(window);
        }
        return engine_.score_sharing(windows, options_.record.level);
    };
    const auto collect = [&](std::vector<WindowResult> results, std::size_t begin, std::size_t) {
        for (std::size_t i = 0; i < results.size(); ++i) {
            parts[begin + i].request->results[parts[begin + i].span] = std::move(results[i]);
        }
    };
    run_in_batches(parts.size(), static_cast<std::size_t>(std::max<std::int64_t>(options_.record.batch, 1)),
                   stop, submit, collect);
    throw_if_stopped(stop);
}

nlohmann::json RequestScorer::answer_of(const ScoredRequest& request) const {
    nlohmann::json nll = nlohmann::json::array();
    nlohmann::json steps = nlohmann::json::array();
    double sum = 0;
    std::int64_t flops = 0;
    bool greedy = true;
    for (std::size_t i = 0; i < request.results.size(); ++i) {
        const TokenColumns& tokens = request.results[i].tokens;
        for (std::size_t row = 0; row < tokens.size(); ++row) {
            // tokens.first is relative to the window.
            const std::int64_t place = request.spans[i].begin + tokens.first + static_cast<std::int64_t>(row);
            if (place + 1 < request.scored_from || place + 1 >= request.sequence->length()) {
                continue;
            }
            nll.push_back(number_or_null(static_cast<double>(tokens.nll[row])));
            steps.push_back(tokens.steps[row]);
            sum += static_cast<double>(tokens.nll[row]);
            flops += tokens.flops[row];
            greedy = greedy && tokens.rank[row] == 1;
        }
    }
    nlohmann::json answer{{"id", request.id}};
    if (std::isnan(sum)) {
        answer["line"] = request.line;
        answer["error"] = no_numbers;
        return answer;
    }
    if (request.kind == Kind::generate) {
        answer["text"] = request.generated;
        answer["tokens"] = std::vector<std::int32_t>(request.sequence->ids.begin() + request.scored_from,
                                                     request.sequence->ids.end());
    } else {
        answer["loglikelihood"] = -sum;
        answer["is_greedy"] = greedy;
    }
    answer["nll"] = std::move(nll);
    answer["steps"] = std::move(steps);
    answer["flops"] = flops;
    return answer;
}

void RequestScorer::answer(std::span<const std::string> lines, std::int64_t first_line,
                           const std::function<void(const nlohmann::json&)>& tell,
                           const std::stop_token& stop) {
    std::vector<ScoredRequest> requests;
    for (const std::string& line : lines) {
        const std::int64_t number = first_line++;
        if (line.find_first_not_of(" \t") == std::string::npos) {
            continue;
        }
        requests.push_back(read(line, number));
        if (requests.back().error.empty()) {
            requests.back().number = requests_++;
        }
    }
    generate(requests, stop);
    score(requests, stop);
    for (ScoredRequest& request : requests) {
        if (!request.error.empty()) {
            tell({{"id", request.id}, {"line", request.line}, {"error", request.error}});
            continue;
        }
        tell(answer_of(request));
        if (recording_ == nullptr) {
            continue;
        }
        SequenceInput& sequence = *request.sequence;
        if (!sequence.text.empty() && request.scored_from < sequence.length()) {
            const std::uint64_t from = sequence.begin[static_cast<std::size_t>(request.scored_from)];
            if (from > 0) {
                sequence.labels.push_back({0, from, "context"});
            }
            if (sequence.text.size() > from) {
                sequence.labels.push_back({from, sequence.text.size(),
                                           !request.label.empty()           ? request.label
                                           : request.kind == Kind::generate ? "generated"
                                                                            : "continuation"});
            }
        }
        recording_->append(request, std::move(request.results));
    }
}

std::int64_t RequestScorer::finish(bool complete) {
    return recording_ ? recording_->finish(complete) : 0;
}

} // namespace ponderscope
