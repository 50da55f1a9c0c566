// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/sample_trace.h"

#include "core/trace/writer.h"
#include "tests/support/half.h"
#include "tests/support/packed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <span>
#include <string_view>

namespace ponderscope::testing {

namespace {

constexpr int adaptive_steps = 3;
constexpr int candidates = 10;
constexpr int depth_layers = 4;
constexpr std::int64_t chunk = 4096;

using Words = std::span<const std::string_view>;

/// Sentences that nobody wrote, in the manner of somebody who keeps a diary beside the sea.
class Grammar {
public:
    explicit Grammar(std::mt19937_64& random) : random_(random) {}

    std::string text(std::int64_t words) {
        std::string all;
        std::int64_t count = 0;
        while (count < words) {
            const std::int64_t sentences = 3 + pick(4);
            for (std::int64_t i = 0; i < sentences; ++i) {
                const std::string next = sentence();
                count += std::count(next.begin(), next.end(), ' ') + 1;
                all += (i == 0 ? "" : " ") + next;
            }
            all += "\n";
        }
        return all;
    }

private:
    std::int64_t pick(std::int64_t below) {
        return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(below));
    }
    std::string any(Words words) {
        return std::string(words[static_cast<std::size_t>(pick(std::ssize(words)))]);
    }

    std::string noun() {
        static constexpr std::array<std::string_view, 28> words{
            "keeper",   "lamp",    "harbour",   "stove",     "letter", "tide",    "barometer",
            "clock",    "gull",    "rope",      "window",    "table",  "winter",  "engine",
            "notebook", "ladder",  "cormorant", "kettle",    "boat",   "signal",  "shadow",
            "coast",    "morning", "island",    "carpenter", "stone",  "herring", "lighthouse"};
        return any(words);
    }
    std::string adjective() {
        static constexpr std::array<std::string_view, 16> words{
            "old",    "small", "brass", "patient", "grey", "quiet",  "broken", "empty",
            "narrow", "cold",  "green", "crooked", "warm", "second", "silver", "stubborn"};
        return any(words);
    }
    std::string phrase() {
        static constexpr std::array<std::string_view, 6> articles{"the", "the", "the", "a", "his", "every"};
        return any(articles) + (pick(3) == 0 ? " " + adjective() : "") + " " + noun();
    }
    std::string verb() {
        static constexpr std::array<std::string_view, 16> words{
            "counted", "carried", "watched", "repaired", "forgot", "answered", "turned", "found",
            "left",    "painted", "lit",     "kept",     "wound",  "drew",     "fitted", "remembered"};
        return any(words);
    }
    std::string tail() {
        static constexpr std::array<std::string_view, 12> words{
            "before breakfast", "twice a night",   "in the rain",       "without a word",
            "for eleven years", "on Tuesday",      "by the last light", "as if it mattered",
            "at low water",     "seventeen times", "with both hands",   "again"};
        return any(words);
    }
    std::string sentence() {
        std::string said;
        switch (pick(4)) {
        case 0:
            said = phrase() + " " + verb() + " " + phrase() + " " + tail();
            break;
        case 1:
            said = "on " + noun() + " days " + phrase() + " " + verb() + " " + phrase() + ", and " +
                   phrase() + " " + verb() + " nothing";
            break;
        case 2:
            said = "he " + verb() + " " + phrase() + ", " + verb() + " " + phrase() + " and " + verb() +
                   " it " + tail();
            break;
        default:
            said = "nobody knew why " + phrase() + " " + verb() + " " + phrase() + " " + tail();
            break;
        }
        said.front() = static_cast<char>(said.front() - 'a' + 'A');
        return said + ".";
    }

    std::mt19937_64& random_;
};

bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (static_cast<unsigned char>(c) >= 0x80);
}

/// What a run says about the tokens of one text.
class Author {
public:
    Author(std::mt19937_64& random, int steps) : random_(random), steps_(steps) {}

    struct Sequence {
        std::vector<std::string> tokens;
        std::vector<std::int32_t> ids;
        std::vector<float> difficulty; ///< of predicting each token, the same for both runs
    };

    void write(TraceWriter& writer, const Sequence& sequence, std::int32_t vocabulary,
               const SampleTrace& what) {
        std::uint64_t byte = 0;
        const auto count = static_cast<std::int64_t>(sequence.tokens.size());
        for (std::int64_t first = 0; first < count; first += chunk) {
            const std::int64_t n = std::min(chunk, count - first);
            TokenColumns columns;
            columns.first = first;
            Steps perStep;
            for (std::int64_t t = first; t < first + n; ++t) {
                const auto i = static_cast<std::size_t>(t);
                columns.id.push_back(sequence.ids[i]);
                columns.begin.push_back(what.withText ? byte : 0);
                byte += sequence.tokens[i].size();
                columns.end.push_back(what.withText ? byte : 0);
                const bool last = t + 1 == count;
                token(columns, perStep, last ? 1.0f : sequence.difficulty[i + 1],
                      last ? -1 : sequence.ids[i + 1], vocabulary);
            }
            std::vector<std::pair<std::string, SignalChunk>> all;
            const auto add = [&](const char* name, DType dtype, std::vector<std::int64_t> shape,
                                 const auto& values) {
                all.emplace_back(name, packed(dtype, std::move(shape), values, first));
            };
            if (what.withSignals) {
                const std::vector<std::int64_t> shape{n, steps_ + 1};
                const std::vector<std::int64_t> wide{n, steps_ + 1, candidates};
                add(signal::nll, DType::f32, shape, perStep.nll);
                add(signal::entropy, DType::f32, shape, perStep.entropy);
                add(signal::max_probability, DType::f32, shape, perStep.best);
                add(signal::rank, DType::i32, shape, perStep.rank);
                add(signal::kl_previous_current, DType::f32, shape, perStep.kl);
                add(signal::cosine, DType::f32, shape, perStep.cosine);
                add(signal::candidate_ids, DType::i32, wide, perStep.ids);
                add(signal::candidate_probabilities, DType::f32, wide, perStep.probabilities);
                if (steps_ > 0) {
                    add(signal::gate, DType::f32, shape, perStep.gate);
                }
            }
            if (what.withDepth) {
                add("depth_weights", DType::f16, {n, 1, depth_layers, depth_layers, 2},
                    depthWeights(sequence, first, n));
            }
            if (what.withAttention) {
                add(signal::attention, DType::f16, {n, steps_ + 1, 2, 2, sample_attention_reach},
                    attention(first, columns.steps));
            }
            writer.append(std::move(columns), std::move(all));
        }
    }

    /// Softmax over a layer's sources, its own value last; 0 where there is no such source. Layer 2 mixes
    /// every token alike.
    std::vector<std::uint16_t> depthWeights(const Sequence& sequence, std::int64_t first, std::int64_t n) {
        std::vector<std::uint16_t> bits;
        for (std::int64_t t = first; t < first + n; ++t) {
            for (int layer = 0; layer < depth_layers; ++layer) {
                double mass[depth_layers][2] = {};
                for (int head = 0; head < 2; ++head) {
                    double sum = 0;
                    for (int source = 0; source <= layer; ++source) {
                        const auto hard =
                            static_cast<double>(sequence.difficulty[static_cast<std::size_t>(t)]);
                        const double logit = layer == 2 ? 0.4 * source
                                                        : 0.5 * hard * (source == 0 ? 1 : -0.3) * (head + 1) +
                                                              static_cast<double>(noise(0.8f));
                        mass[source][head] = std::exp(logit);
                        sum += mass[source][head];
                    }
                    for (int source = 0; source <= layer; ++source) {
                        mass[source][head] /= sum;
                    }
                }
                for (int source = 0; source < depth_layers; ++source) {
                    for (int head = 0; head < 2; ++head) {
                        bits.push_back(float_to_float16(static_cast<float>(mass[source][head])));
                    }
                }
            }
        }
        return bits;
    }

    /// Of tokens from \p first on; steps beyond a token's last read nothing.
    std::vector<std::uint16_t> attention(std::int64_t first, const std::vector<std::int32_t>& ran) const {
        std::vector<std::uint16_t> bits;
        for (std::size_t row = 0; row < ran.size(); ++row) {
            const std::int64_t t = first + static_cast<std::int64_t>(row);
            for (std::int64_t step = 0; step <= steps_; ++step) {
                for (std::int64_t cell = 0; cell < 4; ++cell) {
                    for (std::int64_t back = 0; back < sample_attention_reach; ++back) {
                        const bool reads = step <= ran[row] && back <= t;
                        bits.push_back(float_to_float16(
                            reads ? sample_attention(step, cell / 2, cell % 2, back) : 0.0F));
                    }
                }
            }
        }
        return bits;
    }

    static SignalInfo attentionInfo() {
        const std::vector<std::string> axes{"token", "step", "layer", "head", "back"};
        return {signal::attention,
                axes,
                "weight",
                "Sequence attention",
                "Weight of the key so many tokens back in the attention of each slot, of layers 2, 5; heads "
                "0, 3 in that order; 0 where there is no such slot.",
                DType::f16,
                SignalStorage::trimmed};
    }

    static SignalInfo depthInfo() {
        const std::vector<std::string> axes{"token", "step", "layer", "source", "head"};
        return {"depth_weights",
                axes,
                "weight",
                "Depth-attention weights",
                "Weight of a source layer's value in the value that goes to attention; a layer's own is its "
                "last.",
                DType::f16,
                SignalStorage::compressed};
    }

    static std::vector<SignalInfo> signalInfos(int steps) {
        const std::vector<std::string> axes{"token", "step"};
        const std::vector<std::string> wide{"token", "step", "candidate"};
        std::vector<SignalInfo> infos{
            {signal::nll, axes, "nats", "NLL by step",
             "Negative log-likelihood of the next token read out at each step.", DType::f32,
             SignalStorage::plain, false, true},
            {signal::entropy, axes, "nats", "Entropy by step", "Entropy of the read-out at each step."},
            {signal::max_probability, axes, "probability", "Maximum probability by step",
             "Largest probability of the read-out."},
            {signal::rank, axes, "", "Rank by step",
             "1 + the number of tokens with larger logits than the next token.", DType::i32,
             SignalStorage::plain, false, true},
            {signal::kl_previous_current, axes, "nats", "D_KL(p_k−1 ‖ p_k)",
             "KL(P_{k-1} || P_k), 0 at k = 0."},
            {signal::cosine, axes, "", "Cosine to the step before", "Cosine of h^k and h^{k-1}, 0 at k = 0."},
            {signal::candidate_ids, wide, "", "Candidates", "The ten most probable tokens at each step.",
             DType::i32},
            {signal::candidate_probabilities, wide, "probability", "Candidate probabilities",
             "Their probabilities."}};
        if (steps > 0) {
            infos.push_back({signal::gate, axes, "probability", "Gate value by step",
                             "Probability to go on after the step."});
        }
        return infos;
    }

private:
    struct Steps {
        std::vector<float> nll, entropy, best, kl, cosine, gate, probabilities;
        std::vector<std::int32_t> rank, ids;
    };

    float noise(float scale) { return scale * (unit() + unit() + unit() - 1.5f); }
    float unit() { return static_cast<float>(random_() >> 40) * 0x1p-24f; }

    /// One row. \p target: the next token, -1 at the end of the text.
    void token(TokenColumns& columns, Steps& all, float difficulty, std::int32_t target,
               std::int32_t vocabulary) {
        const float nan = std::numeric_limits<float>::quiet_NaN();
        const int ran =
            steps_ == 0 ? 0 : std::clamp(static_cast<int>(difficulty / 1.9f + noise(0.9f)), 0, steps_);
        float nll = nan;
        float entropy = nan;
        float best = nan;
        std::int32_t rank = 0;
        for (int k = 0; k <= steps_; ++k) {
            const bool halted = k > ran;
            const float help = 1.0f - 0.10f * static_cast<float>(k);
            const float now = std::max(0.02f, difficulty * help + noise(0.25f));
            const float spread = std::max(0.05f, 0.72f * now + 0.5f + noise(0.3f));
            const float top = std::clamp(std::exp(-0.55f * spread) + noise(0.04f), 0.01f, 0.99f);
            const auto place =
                std::max(1, static_cast<int>(std::exp(std::max(0.0f, now - 1.2f)) + noise(1.0f)));
            all.nll.push_back(halted || target < 0 ? nan : now);
            all.entropy.push_back(halted ? nan : spread);
            all.best.push_back(halted ? nan : top);
            all.rank.push_back(halted || target < 0 ? 0 : place);
            all.kl.push_back(halted   ? nan
                             : k == 0 ? 0.0f
                                      : std::max(0.0f, 0.9f / static_cast<float>(k) + noise(0.4f)));
            all.cosine.push_back(
                halted   ? nan
                : k == 0 ? 0.0f
                         : std::clamp(0.75f + 0.08f * static_cast<float>(k) + noise(0.1f), -1.0f, 1.0f));
            all.gate.push_back(
                halted ? nan
                       : std::clamp(0.2f + 0.15f * difficulty - 0.18f * static_cast<float>(k) + noise(0.2f),
                                    0.02f, 0.98f));
            float p = top;
            for (int c = 0; c < candidates; ++c) {
                const bool hit = target >= 0 && c + 1 == place;
                all.ids.push_back(
                    halted ? -1
                    : hit  ? target
                           : static_cast<std::int32_t>(random_() % static_cast<std::uint64_t>(vocabulary)));
                all.probabilities.push_back(halted ? nan : p);
                p *= 0.45f + 0.4f * unit();
            }
            if (!halted) {
                nll = target < 0 ? nan : now;
                entropy = spread;
                best = top;
                rank = target < 0 ? 0 : place;
            }
        }
        columns.nll.push_back(nll);
        columns.entropy.push_back(entropy);
        columns.max_probability.push_back(best);
        columns.rank.push_back(rank);
        columns.steps.push_back(ran);
        columns.flops.push_back(4'800'000 * (1 + ran) + 2 * 4096 * 64);
    }

    std::mt19937_64& random_;
    int steps_;
};

} // namespace

std::vector<std::string> cut_into_tokens(const std::string& text) {
    std::vector<std::string> tokens;
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t end = at;
        if (text[end] == ' ') {
            ++end;
        }
        if (end < text.size() && static_cast<unsigned char>(text[end]) >= 0xf0) {
            end += 2; // the middle of a four-byte character
        } else if (end < text.size() && is_letter(text[end])) {
            const std::size_t word = end;
            while (end < text.size() && is_letter(text[end]) &&
                   static_cast<unsigned char>(text[end]) < 0xf0) {
                ++end;
            }
            std::size_t cut = word + 7;
            while (cut < end && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) {
                ++cut;
            }
            if (end - word > 9 && cut < end) {
                end = cut;
            }
        } else if (end < text.size()) {
            ++end;
        }
        end = std::min(end, text.size());
        tokens.push_back(text.substr(at, end - at));
        at = end;
    }
    return tokens;
}

float sample_attention(std::int64_t step, std::int64_t layer, std::int64_t head, std::int64_t back) {
    const double rate = 0.5 + 0.2 * static_cast<double>(layer) + 0.05 * static_cast<double>(head);
    const auto far = static_cast<double>(back == 0 ? step : back);
    return back < sample_attention_reach ? static_cast<float>((1 - rate) * std::pow(rate, far)) : 0.0F;
}

void write_sample_trace(const std::filesystem::path& path, const SampleTrace& what) {
    std::mt19937_64 random(what.seed);
    Grammar grammar(random);
    std::map<std::string, std::int32_t> vocabulary;
    std::vector<Author::Sequence> sequences;
    std::vector<std::string> texts;
    const std::int64_t count =
        what.texts.empty() ? what.sequences : static_cast<std::int64_t>(what.texts.size());
    for (std::int64_t s = 0; s < count; ++s) {
        Author::Sequence sequence;
        sequence.tokens = cut_into_tokens(what.texts.empty() ? grammar.text(what.tokens)
                                                             : what.texts[static_cast<std::size_t>(s)]);
        if (what.texts.empty()) {
            sequence.tokens.resize(std::min(sequence.tokens.size(), static_cast<std::size_t>(what.tokens)));
        }
        std::string text;
        std::map<std::string, int> seen;
        for (const std::string& token : sequence.tokens) {
            text += token;
            sequence.ids.push_back(
                vocabulary.emplace(token, static_cast<std::int32_t>(vocabulary.size()) + 256).first->second);
            const bool known = seen[token]++ > 0;
            const auto letters = static_cast<float>(token.size());
            const float base = letters < 4 ? 0.4f : 0.55f * letters;
            const float noise = static_cast<float>(random() >> 40) * 0x1p-24f;
            sequence.difficulty.push_back(
                std::clamp(base * (known ? 0.75f : 1.25f) * (0.25f + 1.3f * noise), 0.03f, 11.0f));
        }
        texts.push_back(text);
        sequences.push_back(std::move(sequence));
    }
    const std::int32_t size = static_cast<std::int32_t>(vocabulary.size()) + 256;

    TraceWriter writer(path);
    for (int run = 0; run < (what.secondRun ? 2 : 1); ++run) {
        const int steps = run == 0 ? adaptive_steps : 0;
        RunInfo info;
        info.name = run == 0 ? "adaponderlm-1m" : "vanilla-1m";
        info.checkpoint = "made/up/" + info.name;
        info.checkpoint_digest = std::string(64, run == 0 ? 'a' : 'b');
        info.architecture = "gpt_neox";
        info.method = run == 0 ? "adaponderlm" : "vanilla";
        info.policy = "learned";
        info.scoring = "exact";
        info.device = "cpu";
        info.dtype = "float32";
        info.record_level = what.withSignals ? "steps" : "basic";
        info.text_source = "diary.txt";
        info.text_digest = std::string(64, 'c');
        info.tokenizer_digest = what.withText ? std::string(64, 'd') : "";
        info.versions = R"({"ponderscope":"0.1.0"})";
        info.config = "{}";
        info.choices = run == 0 ? R"({"threshold": 0.0001})" : "";
        info.notices = "[]";
        info.seed = what.seed;
        info.max_steps = steps;
        info.layers = 4;
        info.vocab_size = size;
        info.context = 512;
        info.stride = 512;
        info.started = "2026-01-01T00:00:00Z";
        auto infos = what.withSignals ? Author::signalInfos(steps) : std::vector<SignalInfo>{};
        if (what.withDepth) {
            infos.push_back(Author::depthInfo());
        }
        if (what.withAttention) {
            infos.push_back(Author::attentionInfo());
        }
        writer.begin_run(info, infos);
        Author author(random, steps);
        for (std::size_t s = 0; s < sequences.size(); ++s) {
            writer.begin_sequence("diary " + std::to_string(s + 1), what.withText ? texts[s] : "");
            author.write(writer, sequences[s], size, what);
            const bool open = !what.complete && run == (what.secondRun ? 1 : 0) && s + 1 == sequences.size();
            if (open) {
                return; // the destructor leaves it partial
            }
            writer.end_sequence();
        }
        std::vector<std::pair<std::int32_t, std::string>> bytes;
        for (const auto& [token, id] : vocabulary) {
            bytes.emplace_back(id, token);
        }
        if (what.withText) {
            writer.put_vocabulary(std::move(bytes));
        }
        writer.end_run(3.4);
    }
    writer.finish();
}

} // namespace ponderscope::testing
