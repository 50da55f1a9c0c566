// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/inspector/token_report.h"

#include "core/base/error.h"
#include "core/base/not_a_number.h"
#include "core/trace/reader.h"
#include "views/common/format.h"
#include "views/common/view_command.h"

#include <algorithm>
#include <cmath>

using namespace Qt::StringLiterals;

namespace ponderscope {

SignalChunk row_of(const SignalChunk& chunk, std::int64_t row) {
    SignalChunk one{row, chunk.dtype, chunk.shape, {}};
    const std::int64_t at = row - chunk.first;
    one.shape[0] = at >= 0 && at < chunk.shape[0] ? 1 : 0;
    if (one.shape[0] == 1) {
        const auto bytes = static_cast<std::ptrdiff_t>(chunk.data.size()) / chunk.shape[0];
        one.data.assign(chunk.data.begin() + at * bytes, chunk.data.begin() + (at + 1) * bytes);
    }
    return one;
}

namespace {

/// A run and a row of its sequence.
struct Side {
    RunKey key;
    std::shared_ptr<const SequenceData> data;
    qint64 row = -1;
    [[nodiscard]] bool there() const {
        return data && row >= 0 && row < static_cast<qint64>(data->tokens.size());
    }
    [[nodiscard]] std::size_t at() const { return static_cast<std::size_t>(row); }
    [[nodiscard]] int steps() const { return there() ? data->tokens.steps[at()] : -1; }
};

std::shared_ptr<const SignalChunk> chunk_at(TokenReport& report, TraceData& data, const Side& side,
                                            const QString& name) {
    auto chunk = data.signalAt(side.key, side.data->sequence, name, side.row);
    report.held.push_back(chunk);
    return chunk;
}

std::vector<double> values_by_step(TokenReport& report, TraceData& data, const Side& side,
                                   const SignalInfo& info) {
    if (!side.there()) {
        return {};
    }
    const auto chunk = chunk_at(report, data, side, QString::fromStdString(info.name));
    if (!chunk || chunk->shape.size() != 2) {
        return {};
    }
    std::vector<double> values;
    for (const float value : to_floats(row_of(*chunk, side.row))) {
        values.push_back(info.of_target && !is_real(info.dtype) && value < 1 ? not_a_number
                                                                             : static_cast<double>(value));
    }
    values.resize(std::min(values.size(), static_cast<std::size_t>(side.steps() + 1)));
    while (!values.empty() && std::isnan(values.back())) {
        values.pop_back();
    }
    return values;
}

void add_numbers(TokenReport& report, const TraceData& data, const Side& a, const Side& b) {
    const auto add = [&](const QString& label, const auto& text) {
        const QString nothing = QString::fromUtf16(no_value);
        report.rows.push_back({label, a.there() ? text(a) : nothing,
                               !report.hasB ? QString()
                               : b.there()  ? text(b)
                                            : nothing});
    };
    add(u"NLL"_s, [](const Side& side) { return format_nats(side.data->tokens.nll[side.at()]); });
    add(u"rank"_s, [](const Side& side) {
        const std::int32_t rank = side.data->tokens.rank[side.at()];
        return rank > 0 ? format_count(rank) : QString::fromUtf16(no_value);
    });
    add(u"entropy"_s, [](const Side& side) { return format_nats(side.data->tokens.entropy[side.at()]); });
    const RunInfo* known = data.run(a.key);
    add(steps_word(known != nullptr ? known->step_unit : "step"), [&](const Side& side) {
        const RunInfo* run = data.run(side.key);
        return run && run->max_steps == 0 ? QString::fromUtf16(no_value) : format_count(side.steps());
    });
    add(u"FLOPs"_s,
        [](const Side& side) { return format_si(static_cast<double>(side.data->tokens.flops[side.at()])); });
}

/// The target: the id of the next token; -1 at the end.
std::int32_t target_of(const Side& side) {
    return side.row + 1 < static_cast<qint64>(side.data->tokens.size()) ? side.data->tokens.id[side.at() + 1]
                                                                        : -1;
}

void add_candidates(TokenReport& report, TraceData& data, const Selection& selection, const Side& a,
                    int most) {
    const auto ids = chunk_at(report, data, a, QString::fromLatin1(signal::candidate_ids));
    const auto probabilities =
        chunk_at(report, data, a, QString::fromLatin1(signal::candidate_probabilities));
    if (!ids || !probabilities || ids->shape.size() != 3 || probabilities->shape != ids->shape) {
        return;
    }
    const std::vector<std::int64_t> id = to_integers(row_of(*ids, a.row));
    const std::vector<float> probability = to_floats(row_of(*probabilities, a.row));
    const auto width = static_cast<std::size_t>(ids->shape[2]);
    const std::int32_t target = target_of(a);
    const int selected = selection.step() < 0 ? a.steps() : selection.step();
    const auto by_step = [&](const char* name) {
        SignalInfo info;
        info.name = name;
        return values_by_step(report, data, a, info);
    };
    const std::vector<double> nll = by_step(signal::nll);
    const std::vector<double> rank = by_step(signal::rank);
    const auto word = [&](int number) {
        QString label = data.tokenLabel(a.key, number);
        if (label.startsWith(QChar(0x2423)) && label.size() > 1) {
            label.remove(0, 1); // without the space before the word
        }
        return label.isEmpty() ? u"#%1"_s.arg(number) : label;
    };
    for (int step = 0; step <= a.steps() && (static_cast<std::size_t>(step) + 1) * width <=
                                                std::min(id.size(), probability.size());
         ++step) {
        TokenReport::Step entry;
        entry.step = step;
        entry.selected = step == selected;
        for (std::size_t place = 0; place < width; ++place) {
            const std::size_t i = static_cast<std::size_t>(step) * width + place;
            const bool is_target = target >= 0 && id[i] == target;
            if (id[i] < 0 || std::isnan(probability[i]) || (static_cast<int>(place) >= most && !is_target)) {
                continue;
            }
            entry.candidates.push_back(
                {word(static_cast<int>(id[i])), probability[i], static_cast<int>(place) + 1, is_target});
        }
        // Add the target if it is not among the recorded candidates. Its probability is exp(-NLL).
        const auto at = static_cast<std::size_t>(step);
        const bool listed = std::ranges::any_of(entry.candidates,
                                                [](const TokenReport::Candidate& one) { return one.target; });
        if (!entry.candidates.empty() && !listed && target >= 0 && at < nll.size() && !std::isnan(nll[at]) &&
            at < rank.size() && rank[at] > static_cast<double>(width)) {
            const auto place = static_cast<int>(rank[at]);
            entry.candidates.push_back(
                {u"%1 (rank %2)"_s.arg(word(target), format_count(place)), std::exp(-nll[at]), place, true});
        }
        if (!entry.candidates.empty()) {
            report.candidates.push_back(std::move(entry));
        }
    }
}

void add_curves(TokenReport& report, TraceData& data, const Side& a, const Side& b) {
    const auto of_b = report.hasB ? data.signalsOf(b.key) : std::span<const SignalInfo>();
    for (const SignalInfo& info : data.signalsOf(a.key)) {
        if (!info.is_by_step() || info.name == signal::argmax) {
            continue;
        }
        TokenReport::Curve curve;
        curve.name = QString::fromStdString(info.name);
        curve.title = QString::fromStdString(info.title.empty() ? info.name : info.title);
        curve.unit = QString::fromStdString(info.unit);
        curve.a = values_by_step(report, data, a, info);
        const bool also_b = std::ranges::any_of(
            of_b, [&](const SignalInfo& other) { return other.is_by_step() && other.name == info.name; });
        if (also_b) {
            curve.b = values_by_step(report, data, b, info);
        }
        if (curve.a.empty() && curve.b.empty()) {
            continue;
        }
        if (info.name == signal::gate || info.name == signal::halting_mass) {
            report.gates.push_back(std::move(curve));
        } else if (info.name == signal::nll) {
            report.curves.insert(report.curves.begin(), std::move(curve));
        } else if (curve.a.size() > 1 || curve.b.size() > 1) {
            report.curves.push_back(std::move(curve));
        }
    }
}

QString headline_of(TraceData& data, const Side& a, qint64 token) {
    const auto at = static_cast<std::size_t>(token);
    const std::string_view bytes = token_bytes(a.data->tokens, a.data->text, at);
    if (bytes.empty()) {
        const QString label = data.tokenLabel(a.key, a.data->tokens.id[at]);
        return label.isEmpty() ? u"#%1"_s.arg(a.data->tokens.id[at]) : label;
    }
    const QString shown = visible_token_of(a.data->tokens, a.data->text, at);
    const auto first = std::min(bytes.find_first_not_of(' '), bytes.size() - 1);
    return bytes[first] == ' ' ? shown
                               : shown.mid(static_cast<qsizetype>(first)); // "␣word" without its space
}

} // namespace

TokenReport token_report(TraceData& data, const Selection& selection, int most) {
    TokenReport report;
    Side a{selection.runA(), nullptr, -1};
    if (!a.key.isValid()) {
        report.hint = u"Open a trace: drop it on the window, or choose File → Open. This panel shows the "
                      "numbers of a token."_s;
        return report;
    }
    a.data = data.sequence(a.key, selection.sequence());
    report.held.push_back(a.data);
    if (!a.data) {
        report.hint = why_no_sequence(data, selection);
        return report;
    }
    const qint64 token = selection.shown();
    if (token < 0 || token >= static_cast<qint64>(a.data->tokens.size())) {
        report.hint = u"Hover over a word of the text to see its numbers. Click to pin the word. The "
                      "arrow keys go to the next word."_s;
        return report;
    }
    report.token = token;
    const RunInfo* known = data.run(a.key);
    report.step = step_word(known != nullptr ? known->step_unit : "step");
    const auto at = static_cast<std::size_t>(token);
    a.row = selection.rowOf(token);
    Side b{selection.runB(), nullptr, -1};
    report.hasB = b.key.isValid() && !(b.key == a.key);
    if (report.hasB) {
        b.data = data.sequence(b.key, selection.sequence());
        report.held.push_back(b.data);
        const bool same =
            b.data && at < b.data->tokens.size() && b.data->tokens.id[at] == a.data->tokens.id[at];
        b.row = same ? a.row : -1;
        if (b.data && !same) {
            report.notes.push_back(u"Run B has a different token here, so the numbers of run B are not "
                                   "shown."_s);
        }
    }

    report.headline = u"“%1”"_s.arg(headline_of(data, a, token));
    report.subtitle = u"id %1"_s.arg(a.data->tokens.id[at]);
    if (a.data->tokens.end[at] > a.data->tokens.begin[at]) {
        report.subtitle += u" · bytes %1–%2"_s.arg(a.data->tokens.begin[at]).arg(a.data->tokens.end[at] - 1);
    }
    report.subtitle += u" · sequence %1"_s.arg(selection.sequence() + 1);
    add_numbers(report, data, a, b);
    if (!a.there()) {
        report.notes.push_back(selection.attribution() == Attribution::predicted
                                   ? u"The first token is not predicted."_s
                                   : u"Nothing was recorded at this token."_s);
        return report;
    }
    const auto infos = data.signalsOf(a.key);
    if (!data.isBeginning(a.key) && std::ranges::none_of(infos, std::mem_fn(&SignalInfo::is_by_step))) {
        report.notes.push_back(u"This run has no read-outs by step. Record the run again with “steps” to "
                               "see candidates and curves."_s);
    }
    try {
        add_candidates(report, data, selection, a, most);
        add_curves(report, data, a, b);
    } catch (const Error& error) {
        report.notes.push_back(QString::fromUtf8(error.what()));
    }
    return report;
}

} // namespace ponderscope
