// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/stats/labels.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/stats/significance.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

namespace ponderscope {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t most_classes = 256;

/// A record of CSV (RFC 4180): fields with commas, quotes or line ends stand in double quotes.
class CsvRecords {
public:
    CsvRecords(const std::filesystem::path& file, std::string_view text) : file_(file), rest_(text) {}

    bool next(std::vector<std::string>& fields) {
        fields.clear();
        if (rest_.empty()) {
            return false;
        }
        line_ = next_line_;
        std::string field;
        bool quoted = false;
        while (true) {
            const char c = rest_.empty() ? '\n' : rest_.front();
            const bool ends = rest_.empty();
            if (!ends) {
                rest_.remove_prefix(1);
            }
            next_line_ += c == '\n' ? 1 : 0;
            if (quoted && ends) {
                throw InputError(file_.string() + ": line " + std::to_string(line_) +
                                 " opens a quote that nothing closes.");
            }
            if (quoted) {
                if (c != '"') {
                    field += c;
                } else if (!rest_.empty() && rest_.front() == '"') {
                    field += '"';
                    rest_.remove_prefix(1);
                } else {
                    quoted = false;
                }
            } else if (c == '"' && field.empty()) {
                quoted = true;
            } else if (c == ',' || c == '\n') {
                fields.push_back(std::move(field));
                field.clear();
                if (c == '\n') {
                    return true;
                }
            } else if (c != '\r' || (!rest_.empty() && rest_.front() != '\n')) {
                field += c;
            }
        }
    }
    [[nodiscard]] std::int64_t line() const { return line_; }

private:
    const std::filesystem::path& file_;
    std::string_view rest_;
    std::int64_t line_ = 1, next_line_ = 1;
};

std::optional<std::uint64_t> whole_number(const std::string& text) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() && !text.empty() ? std::optional(value)
                                                                                     : std::nullopt;
}

std::string named(const TraceReader& trace, const RunInfo& run) {
    return trace.path().string() + "#" + run.name;
}

/// Rows of one sequence, by where they begin.
std::map<std::int64_t, std::vector<Labels::Row>> by_sequence(const TraceReader& trace, const RunInfo& run,
                                                             const Labels& labels,
                                                             const std::vector<SequenceInfo>& sequences) {
    std::map<std::string, std::int64_t> numbers;
    for (const SequenceInfo& sequence : sequences) {
        numbers.emplace(sequence.title, sequence.index);
    }
    std::map<std::int64_t, std::vector<Labels::Row>> result;
    for (const Labels::Row& row : labels.rows) {
        const std::string where = labels.file.string() + ": line " + std::to_string(row.line);
        std::optional<std::int64_t> number;
        if (row.sequence >= 0) {
            number = row.sequence;
        } else if (row.document.empty() && sequences.size() == 1) {
            number = 0;
        } else if (const auto found = numbers.find(row.document); found != numbers.end()) {
            number = found->second;
        } else if (const auto value = whole_number(row.document); value && *value < sequences.size()) {
            number = static_cast<std::int64_t>(*value);
        }
        if (!number) {
            if (!run.complete) {
                continue; // a recording that did not get there
            }
            throw InputError(where + " names the sequence \"" + row.document + "\", and " +
                             named(trace, run) + " has none of that title or number; it has " +
                             std::to_string(sequences.size()) + ", numbered from 0.");
        }
        result[*number].push_back(row);
    }
    for (auto& [number, rows] : result) {
        std::stable_sort(rows.begin(), rows.end(),
                         [](const Labels::Row& a, const Labels::Row& b) { return a.begin < b.begin; });
        for (std::size_t i = 1; i < rows.size(); ++i) {
            if (rows[i].begin < rows[i - 1].end) {
                throw InputError(labels.file.string() + ": lines " + std::to_string(rows[i - 1].line) +
                                 " and " + std::to_string(rows[i].line) +
                                 " label the same place; give every place one class.");
            }
        }
    }
    return result;
}

/// The class under most of [begin, end); the first of equals.
std::int32_t label_of(const std::vector<Labels::Row>& rows, std::uint64_t begin, std::uint64_t end) {
    auto row = std::partition_point(rows.begin(), rows.end(),
                                    [&](const Labels::Row& one) { return one.end <= begin; });
    std::int32_t best = -1;
    std::uint64_t most = 0;
    for (; row != rows.end() && row->begin < end; ++row) {
        const std::uint64_t covered = std::min(end, row->end) - std::max(begin, row->begin);
        if (covered > most) {
            most = covered;
            best = row->label;
        }
    }
    return best;
}

} // namespace

Labels Labels::read(const std::filesystem::path& csv) {
    const std::string text = read_file(csv);
    Labels labels;
    labels.file = csv;
    CsvRecords records(csv, text);
    std::vector<std::string> fields;
    const std::string expected = "a header with the columns document,begin,end,class or sequence,token,class";
    if (!records.next(fields)) {
        throw InputError(csv, expected, "an empty file", "write one row a label under such a header");
    }
    const auto find = [&](std::initializer_list<const char*> names) -> std::optional<std::size_t> {
        for (std::size_t i = 0; i < fields.size(); ++i) {
            for (const char* name : names) {
                if (fields[i] == name) {
                    return i;
                }
            }
        }
        return std::nullopt;
    };
    if (!fields.empty() && fields.front().starts_with("\xEF\xBB\xBF")) {
        fields.front().erase(0, 3);
    }
    const auto document = find({"document", "sequence"});
    const auto begin = find({"begin", "token", "token_index", "position"});
    const auto end = find({"end"});
    const auto label = find({"class", "label"});
    labels.by_bytes = find({"begin"}).has_value();
    if (!begin || !label || labels.by_bytes != end.has_value()) {
        std::string found;
        for (const std::string& field : fields) {
            found += (found.empty() ? "" : ",") + field.substr(0, 40);
        }
        throw InputError(csv, expected, "\"" + found.substr(0, 200) + "\"",
                         "name the columns in the first line");
    }
    const std::size_t columns = fields.size();
    std::map<std::string, std::int32_t> numbers;
    while (records.next(fields)) {
        const std::string where = csv.string() + ": line " + std::to_string(records.line());
        if (fields.size() == 1 && fields.front().empty()) {
            continue;
        }
        if (fields.size() != columns) {
            throw InputError(where + " has " + std::to_string(fields.size()) +
                             " fields where the header has " + std::to_string(columns) + ".");
        }
        const auto number = [&](std::size_t column) {
            const std::optional<std::uint64_t> value = whole_number(fields[column]);
            if (!value || *value > std::numeric_limits<std::uint64_t>::max() / 2) {
                throw InputError(where + ": expected a whole number from 0, found \"" +
                                 fields[column].substr(0, 40) + "\".");
            }
            return *value;
        };
        Row row;
        row.line = records.line();
        row.document = document ? fields[*document] : "";
        row.begin = number(*begin);
        row.end = end ? number(*end) : row.begin + 1;
        if (row.end <= row.begin) {
            throw InputError(where + ": expected an end above the begin " + std::to_string(row.begin) +
                             ", found " + std::to_string(row.end) + ".");
        }
        const auto [entry, fresh] =
            numbers.emplace(fields[*label], static_cast<std::int32_t>(labels.classes.size()));
        if (fresh) {
            labels.classes.push_back(fields[*label]);
        }
        if (labels.classes.size() > most_classes) {
            throw InputError(where + ": expected at most " + std::to_string(most_classes) +
                             " classes, found more; a column of another meaning?");
        }
        row.label = entry->second;
        labels.rows.push_back(std::move(row));
    }
    return labels;
}

Labels Labels::recorded(const TraceReader& trace, const RunInfo& run) {
    Labels labels;
    labels.file = trace.path();
    std::map<std::string, std::int32_t> numbers;
    for (auto& [sequence, label] : trace.labels(run.id)) {
        const auto [entry, fresh] =
            numbers.emplace(label.name, static_cast<std::int32_t>(labels.classes.size()));
        if (fresh) {
            labels.classes.push_back(label.name);
        }
        if (labels.classes.size() > most_classes) {
            throw InputError(named(trace, run) + ": expected at most " + std::to_string(most_classes) +
                             " classes of labels, found more; record it with another --label-field, or give "
                             "classes with --labels.");
        }
        labels.rows.push_back({{}, sequence, label.begin, label.end, entry->second, 0});
    }
    return labels;
}

LabelledTokens label_tokens(const TraceReader& trace, const RunInfo& run, const Labels& labels,
                            LabelPlace place, const std::stop_token& stop) {
    constexpr std::int64_t page = 1 << 16;
    if (labels.by_bytes && run.text_bytes == 0) {
        throw InputError(
            named(trace, run) +
            ": expected a run with its text for labels by bytes, found token ids only; record it "
            "with --text, or label tokens (sequence,token,class).");
    }
    const std::vector<SequenceInfo> sequences = trace.sequences(run.id);
    const auto rows_of = by_sequence(trace, run, labels, sequences);
    LabelledTokens result;
    result.classes = labels.classes;
    result.max_steps = run.max_steps;
    ClusterNumbers clusters;
    for (const SequenceInfo& sequence : sequences) {
        static const std::vector<Labels::Row> none;
        const auto found = rows_of.find(sequence.index);
        const std::vector<Labels::Row>& rows = found == rows_of.end() ? none : found->second;
        if (run.complete && !rows.empty()) {
            const std::uint64_t length = labels.by_bytes ? trace.text(run.id, sequence.index).size()
                                                         : static_cast<std::uint64_t>(sequence.tokens);
            if (rows.back().end > length) {
                throw InputError(labels.file.string() + ": line " + std::to_string(rows.back().line) +
                                 " goes to " + (labels.by_bytes ? "byte " : "token ") +
                                 std::to_string(rows.back().end) + ", and sequence " +
                                 std::to_string(sequence.index) + " has " + std::to_string(length) +
                                 "; the labels are of another text.");
            }
        }
        std::int64_t previous = -2;
        std::int64_t cluster = -1;
        for (std::int64_t begin = 0; begin < sequence.tokens; begin += page) {
            if (stop.stop_requested()) {
                throw Cancelled();
            }
            // One more, for the last one's target.
            const TokenColumns tokens = trace.tokens(run.id, sequence.index, begin, begin + page + 1);
            const std::size_t here = std::min<std::size_t>(tokens.size(), page);
            for (std::size_t i = 0; i < here; ++i) {
                if (std::isnan(tokens.nll[i])) {
                    continue;
                }
                const std::int64_t position = begin + static_cast<std::int64_t>(i);
                const std::size_t meant = place == LabelPlace::prediction ? i + 1 : i;
                std::int32_t label = -1;
                if (labels.by_bytes) {
                    label =
                        meant < tokens.size() ? label_of(rows, tokens.begin[meant], tokens.end[meant]) : -1;
                } else {
                    const auto token = static_cast<std::uint64_t>(begin) + meant;
                    label = label_of(rows, token, token + 1);
                }
                cluster = cluster < 0 ? clusters.of(sequence) : cluster;
                result.layout.add(cluster, position == previous + 1);
                previous = position;
                result.label.push_back(label);
                result.steps.push_back(tokens.steps[i]);
                result.nll.push_back(static_cast<double>(tokens.nll[i]));
                result.unlabelled += label < 0 ? 1 : 0;
            }
        }
    }
    if (result.unlabelled == static_cast<std::int64_t>(result.label.size())) {
        throw InputError(labels.file.string() + ": none of its " + std::to_string(labels.rows.size()) +
                         " labels lies under a scored token of " + named(trace, run) +
                         "; they are of another text, or of tokens that were not scored.");
    }
    return result;
}

namespace {

/// From sums by unit: of the class tokens, steps, nats; of the others tokens, steps. NaN where there is
/// nothing to test: no others, or steps that do not vary.
double class_p(const UnitSums& units) {
    const auto total = [&](std::size_t column) {
        const std::vector<double> values = units.column(column);
        return std::accumulate(values.begin(), values.end(), 0.0);
    };
    const double mine = total(0);
    const double others = total(3);
    if (mine < 2 || others < 1) {
        return nan;
    }
    const double mean = (total(1) + total(4)) / (mine + others);
    std::vector<double> centred;
    std::vector<std::pair<std::size_t, double>> in_class;
    bool varies = false;
    for (std::size_t u = 0; u < units.units(); ++u) {
        const double* sums = units.sums.data() + u * units.width;
        in_class.emplace_back(u, sums[1] - mean * sums[0]);
        centred.push_back(in_class.back().second + sums[4] - mean * sums[3]);
        varies = varies || in_class.back().second != 0 || centred.back() != 0;
    }
    return varies ? group_difference_p(centred, in_class, mine / (mine + others)) : nan;
}

} // namespace

std::vector<LabelledClass> compare_classes(const LabelledTokens& tokens, const BootstrapOptions& options,
                                           DiscoveryControl control) {
    // One class after the other: all at once would take memory for every class and token.
    constexpr std::size_t width = 5; // of the class: tokens, steps, nats; of the others: tokens, steps
    const auto ratio = [](double sum, double n) { return n > 0 ? sum / n : nan; };
    const std::vector<Statistic> statistics{
        [ratio](std::span<const double> sums, std::int64_t) { return ratio(sums[1], sums[0]); },
        [ratio](std::span<const double> sums, std::int64_t) { return ratio(sums[2], sums[0]); },
        [ratio](std::span<const double> sums, std::int64_t) {
            return ratio(sums[1], sums[0]) - ratio(sums[4], sums[3]);
        },
    };
    const std::span<const double> series[] = {tokens.steps};
    const Resampling resampling = choose_resampling(tokens.layout, series, options);
    const BootstrapOptions settled = resampling.apply(options);
    std::vector<LabelledClass> classes;
    std::vector<double> p;
    std::vector<double> columns(tokens.label.size() * width);
    for (std::size_t c = 0; c < tokens.classes.size(); ++c) {
        LabelledClass one;
        one.group.name = tokens.classes[c];
        std::int64_t dropped = 0;
        for (std::size_t i = 0; i < tokens.label.size(); ++i) {
            const bool here = tokens.label[i] == static_cast<std::int32_t>(c);
            const bool elsewhere = !here && tokens.label[i] >= 0;
            double* row = columns.data() + i * width;
            row[0] = here ? 1 : 0;
            row[1] = here ? tokens.steps[i] : 0;
            row[2] = here ? tokens.nll[i] : 0;
            row[3] = elsewhere ? 1 : 0;
            row[4] = elsewhere ? tokens.steps[i] : 0;
            one.group.count += here ? 1 : 0;
            dropped += here && tokens.steps[i] < static_cast<double>(tokens.max_steps) ? 1 : 0;
        }
        if (one.group.count == 0) {
            continue; // of tokens that were not scored
        }
        const PrefixSums sums(columns, width, tokens.layout);
        const std::vector<Estimate> estimates = bootstrap(sums, statistics, settled);
        one.steps = estimates[0];
        one.nll = estimates[1];
        one.steps_difference = estimates[2];
        one.group.mean_steps = one.steps.value;
        one.group.mean_nll = one.nll.value;
        one.group.dropped = static_cast<double>(dropped) / static_cast<double>(one.group.count);
        one.group.steps_elsewhere = one.steps.value - one.steps_difference.value;
        one.group.p = class_p(unit_sums(sums, resampling));
        p.push_back(one.group.p);
        classes.push_back(std::move(one));
    }
    const std::vector<double> q = false_discovery_q(p, control);
    for (std::size_t i = 0; i < classes.size(); ++i) {
        classes[i].group.q = q[i];
    }
    return classes;
}

} // namespace ponderscope
