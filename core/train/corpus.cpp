// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/train/corpus.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/sha256.h"
#include "core/base/splitmix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include <fnmatch.h>

namespace ponderscope {

namespace {

/// A part of the corpus digest. Change it if the same texts get other tokens.
constexpr std::string_view corpus_format = "ponderscope-tokens-2";

/// Names of the regular files in a folder, and with \p deep (for patterns with a slash) in its subfolders.
std::vector<std::string> names_below(const std::filesystem::path& folder, bool deep) {
    std::vector<std::string> names;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator walk(folder, error), end; !error && walk != end;
         walk.increment(error)) {
        if (!deep) {
            walk.disable_recursion_pending();
        }
        std::error_code ignored;
        if (walk->is_regular_file(ignored)) {
            names.push_back(walk->path().lexically_relative(folder).generic_string());
        }
    }
    if (error) {
        throw_file_error(folder, error.value(), "read");
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::set<std::string> matching(const std::vector<std::string>& patterns,
                               const std::vector<std::string>& names, const Recipe& recipe,
                               const std::string& key) {
    std::set<std::string> result;
    for (const auto& pattern : patterns) {
        bool any = false;
        for (const auto& name : names) {
            if (::fnmatch(pattern.c_str(), name.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0) {
                result.insert(name);
                any = true;
            }
        }
        if (!any) {
            throw InputError(ErrorId::training_recipe, recipe.source,
                             "a text for \"" + pattern + "\" in texts." + key,
                             "none in " + recipe.texts.string(), "correct the name or texts.folder");
        }
    }
    return result;
}

} // namespace

Corpus load_corpus(const Recipe& recipe, const Tokenizer& tokenizer, const ProgressSink& report,
                   const std::stop_token& stop) {
    std::error_code error;
    if (!std::filesystem::is_directory(recipe.texts, error)) {
        throw InputError(ErrorId::training_recipe, recipe.texts, "a folder of texts",
                         std::filesystem::exists(recipe.texts, error) ? "a file" : "nothing at this path",
                         "correct texts.folder in " + recipe.source.string() +
                             " or name the folder with --texts DIR");
    }
    const auto has_slash = [](const std::string& pattern) { return pattern.find('/') != std::string::npos; };
    const bool deep = std::any_of(recipe.train_texts.begin(), recipe.train_texts.end(), has_slash) ||
                      std::any_of(recipe.held_out_texts.begin(), recipe.held_out_texts.end(), has_slash);
    const auto names = names_below(recipe.texts, deep);
    auto train = matching(recipe.train_texts, names, recipe, "train");
    const auto held_out = matching(recipe.held_out_texts, names, recipe, "held_out");
    for (const auto& name : held_out) {
        train.erase(name);
    }
    if (train.empty()) {
        throw InputError(ErrorId::training_recipe, recipe.source, "a text to train on",
                         "none, because texts.held_out takes all texts", "leave some texts out of it");
    }
    std::optional<std::int32_t> end;
    if (!recipe.document_end.empty()) {
        end = tokenizer.id_of(recipe.document_end);
        if (!end) {
            throw InputError(ErrorId::training_recipe, recipe.source,
                             "a token of " + recipe.tokenizer.string() + " as texts.document_end",
                             "\"" + recipe.document_end + "\"", "correct it or leave it out");
        }
    }

    std::set<std::string> all = train;
    all.insert(held_out.begin(), held_out.end());
    Progress progress{"reading texts", 0, 0, "bytes"};
    for (const auto& name : all) {
        const auto size = std::filesystem::file_size(recipe.texts / name, error);
        progress.total += error ? 0 : static_cast<std::int64_t>(size);
    }
    Sha256 digest;
    digest.update(corpus_format).update(tokenizer.content_digest());

    Corpus corpus;
    double held_out_bytes = 0;
    for (const auto& name : all) {
        throw_if_stopped(stop);
        report_progress(report, progress);
        const auto path = recipe.texts / name;
        const std::string text = read_text_file(path);
        CorpusText entry;
        entry.name = name;
        entry.sha256 = sha256_hex(text);
        entry.bytes = text.size();
        digest.update(name).update(entry.sha256);

        const std::vector<std::int32_t> ids = tokenizer.encode(text, false).ids;
        const bool whole = held_out.contains(name);
        const auto count = static_cast<std::int64_t>(ids.size());
        entry.held_out_tokens = whole ? count
                                      : static_cast<std::int64_t>(std::floor(static_cast<double>(count) *
                                                                             recipe.held_out_fraction));
        entry.train_tokens = count - entry.held_out_tokens;
        if (count > 0) {
            held_out_bytes += static_cast<double>(entry.bytes) * static_cast<double>(entry.held_out_tokens) /
                              static_cast<double>(count);
        }
        const auto split = ids.begin() + entry.train_tokens;
        if (entry.train_tokens > 0) {
            corpus.train.insert(corpus.train.end(), ids.begin(), split);
            if (end) {
                corpus.train.push_back(*end);
            }
        }
        if (entry.held_out_tokens > 0) {
            corpus.held_out.insert(corpus.held_out.end(), split, ids.end());
            if (end) {
                corpus.held_out.push_back(*end);
            }
        }
        progress.done += static_cast<std::int64_t>(entry.bytes);
        corpus.texts.push_back(std::move(entry));
    }
    report_progress(report, progress);
    if (!corpus.held_out.empty()) {
        corpus.held_out_bytes_per_token = held_out_bytes / static_cast<double>(corpus.held_out.size());
    }
    corpus.digest = digest.finish_hex();
    return corpus;
}

ContextSampler::ContextSampler(std::span<const std::int32_t> stream, std::int64_t context, std::uint64_t seed,
                               bool shifted)
    : stream_(stream), context_(context), seed_(seed), shifted_(shifted) {
    const auto size = static_cast<std::int64_t>(stream_.size());
    if (size < context + 1) {
        throw InputError(ErrorId::training_recipe,
                         "The training text has " + std::to_string(size) +
                             " tokens, fewer than a context of " + std::to_string(context) +
                             " and the token after it; give more text or a shorter context.");
    }
    // Every phase has this number of windows, so the counter determines the epoch.
    windows_ = std::max<std::int64_t>((size - (shifted ? context : 1)) / context, 1);
    if (windows_ > std::numeric_limits<std::uint32_t>::max()) {
        throw InputError(ErrorId::training_recipe, "The training text has " + std::to_string(size) +
                                                       " tokens, more than can be cut into contexts of " +
                                                       std::to_string(context) + "; give a longer context.");
    }
    begin_epoch(0);
}

void ContextSampler::begin_epoch(std::uint64_t epoch) {
    epoch_ = epoch;
    const std::uint64_t draws = splitmix64(seed_, epoch);
    const auto size = static_cast<std::int64_t>(stream_.size());
    const std::int64_t phases = shifted_ ? std::min(context_, size - windows_ * context_) : 1;
    phase_ = static_cast<std::int64_t>(bounded(splitmix64(draws, 0), static_cast<std::uint64_t>(phases)));
    order_.resize(static_cast<std::size_t>(windows_));
    std::iota(order_.begin(), order_.end(), 0U);
    for (std::size_t i = order_.size(); i > 1; --i) {
        std::swap(order_[i - 1], order_[bounded(splitmix64(draws, i), i)]);
    }
}

std::span<const std::int32_t> ContextSampler::window(std::uint64_t n) {
    const auto windows = static_cast<std::uint64_t>(windows_);
    if (n / windows != epoch_) {
        begin_epoch(n / windows);
    }
    const std::int64_t begin = phase_ + static_cast<std::int64_t>(order_[n % windows]) * context_;
    return stream_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(context_ + 1));
}

std::vector<std::int64_t> held_out_windows(std::int64_t stream_tokens, std::int64_t context,
                                           std::int64_t most) {
    const std::int64_t there = stream_tokens > context ? (stream_tokens - 1) / context : 0;
    const std::int64_t wanted = most > 0 ? std::min(most, there) : there;
    std::vector<std::int64_t> begins(static_cast<std::size_t>(wanted));
    for (std::int64_t i = 0; i < wanted; ++i) {
        begins[static_cast<std::size_t>(i)] = (i * there / wanted) * context;
    }
    return begins;
}

} // namespace ponderscope
