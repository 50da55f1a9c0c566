// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/halting/step_charts.h"

#include "core/base/error.h"
#include "core/stats/bootstrap.h"
#include "core/stats/scan.h"
#include "core/stats/significance.h"
#include "core/trace/column_labels.h"
#include "core/trace/reader.h"
#include "views/common/colour_map.h"
#include "views/common/format.h"
#include "views/common/value_look.h"

#include <algorithm>
#include <cmath>
#include <utility>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

constexpr std::int64_t most_columns = 4096; ///< largest size of the second axis

/// Whether a signal compares a step with earlier steps. Its first steps are 0.
bool compares_with_steps_before(const std::string& name) {
    return name == signal::kl_previous_current || name == signal::kl_current_previous ||
           name == signal::cosine || name == signal::latent_difference || name == signal::update_cosine ||
           name == signal::acceleration;
}

bool belongs_on_a_logarithmic_axis(const std::string& name) {
    return name == signal::kl_previous_current || name == signal::kl_current_previous ||
           name == signal::latent_difference || name == signal::jacobi_difference || name == signal::rank;
}

/// The signal with this name, with or without \p prefix, among those that fit. \p axes: for the error.
SignalInfo find_signal(const TraceReader& reader, const RunInfo& run, const std::string& name,
                       const std::string& prefix, const std::string& axes,
                       const std::function<bool(const SignalInfo&)>& fits, const std::string& remedy) {
    std::string known;
    for (const SignalInfo& info : reader.signal_infos(run.id)) {
        if (fits(info)) {
            if (info.name == name || info.name == prefix + name) {
                return info;
            }
            known += (known.empty() ? "" : ", ") + info.name;
        }
    }
    throw InputError(ErrorId::run_unsuited, reader.path(),
                     "a signal \"" + name + "\" of run \"" + run.name + "\" by " + axes,
                     known.empty() ? "no such signal" : "the signals " + known, remedy);
}

/// The 95 % interval of a mean between 0 and \p most: Student's t over units, by the delta method on the
/// logit, so that the interval stays in the range. NaN for a single unit or a mean at an end of the range.
std::pair<double, double> bounded_interval(const UnitMean& mean, double most) {
    const double share = mean.mean / most;
    if (!(share > 0) || !(share < 1) || std::isnan(mean.standard_error)) {
        return {std::nan(""), std::nan("")};
    }
    const double half =
        student_quantile(0.975, mean.degrees) * mean.standard_error / (most * share * (1 - share));
    const double logit = std::log(share / (1 - share));
    const auto back = [most](double at) { return most / (1 + std::exp(-at)); };
    return {back(logit - half), back(logit + half)};
}

} // namespace

QString group_name(const TokenGrouping::Group& group, const std::string& by) {
    if (by == "position") {
        return u"%1–%2"_s.arg(format_count(static_cast<std::int64_t>(group.low)),
                              format_count(static_cast<std::int64_t>(group.high)));
    }
    if (by == "difficulty") {
        return u"%1 to %2 nats"_s.arg(format_nats(group.low), format_nats(group.high));
    }
    return group.id >= 0 ? type_name(group.id, group.name) : QString::fromStdString(group.name);
}

QString type_name(std::int32_t id, const std::string& bytes) {
    return bytes.empty() ? u"‹id %1›"_s.arg(id) : visible_token(bytes);
}

std::vector<Chart::Series>
spread_series(std::span<const Spread> steps, std::size_t first,
              const std::function<QString(std::size_t, double, double, double)>& label) {
    auto band = Chart::Series::of(Chart::Mark::band, Chart::a, u"middle half of the tokens"_s);
    auto mean = Chart::Series::of(Chart::Mark::line, Chart::a, u"mean"_s);
    auto points = Chart::Series::of(Chart::Mark::point);
    for (std::size_t k = first; k < steps.size(); ++k) {
        const auto x = static_cast<double>(k);
        const double y = steps[k].mean();
        const double low = steps[k].quantile(0.25);
        const double high = steps[k].quantile(0.75);
        band.add(x, y, low, high);
        mean.add(x, y);
        points.add(x, y, label(k, y, low, high));
    }
    return {std::move(band), std::move(mean), std::move(points)};
}

Chart signal_by_step_chart(const std::filesystem::path& trace, const std::string& run,
                           const std::string& signal, const std::stop_token& stop) {
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo info = find_run(reader, run);
    const SignalInfo what = find_signal(
        reader, info, signal, {}, "step",
        [](const SignalInfo& one) { return one.axes.size() == 2 && one.axes[0] == "token"; },
        signal == signal::jacobi_difference ? "record the run with --jacobi N; exact scoring has no refreshes"
                                            : "record the run with --record steps, or choose another signal");
    const bool steps = what.axes[1] == "step";
    const bool zero_is_none = what.of_target && !is_real(what.dtype);
    std::vector<Spread> spreads;
    for_each_slice(reader, info, stop,
                   [&](const SequenceInfo& sequence, std::int64_t begin, std::int64_t end) {
                       const auto chunk = reader.signal(info.id, sequence.number, signal, begin, end);
                       if (!chunk || chunk->shape[1] > most_columns) {
                           return;
                       }
                       const std::vector<std::int32_t> ran =
                           steps ? reader.tokens(info.id, sequence.number, begin, end).steps
                                 : std::vector<std::int32_t>();
                       const std::vector<float> values = to_floats(*chunk);
                       const auto width = static_cast<std::size_t>(chunk->shape[1]);
                       spreads.resize(std::max(spreads.size(), width));
                       for (std::size_t row = 0; row < values.size() / width; ++row) {
                           for (std::size_t k = 0; k < width; ++k) {
                               const float value = values[row * width + k];
                               const bool executed =
                                   !steps || (row < ran.size() && static_cast<std::int64_t>(k) <= ran[row]);
                               if (executed && !(zero_is_none && value <= 0)) {
                                   spreads[k].add(value);
                               }
                           }
                       }
                   });
    Chart chart;
    const QString title = QString::fromStdString(what.shown_name());
    chart.title = title;
    chart.x.label = steps ? step_word(info.step_unit) : u"refresh"_s;
    chart.x.whole = true;
    chart.y.label = what.unit.empty() ? title : u"%1 (%2)"_s.arg(title, QString::fromStdString(what.unit));
    chart.y.log = belongs_on_a_logarithmic_axis(signal);
    const auto compared = [&](const Spread& spread) {
        return !compares_with_steps_before(signal) || spread.all().mean != 0 || spread.all().squares != 0;
    };
    const auto first = std::ranges::find_if(spreads, compared);
    chart.series =
        spread_series(spreads, static_cast<std::size_t>(first - spreads.begin()),
                      [&](std::size_t k, double mean, double low, double high) {
                          return u"%1 %2: mean %3, middle half of the tokens from %4 to %5; %6 tokens"_s.arg(
                              chart.x.label, QString::number(k), QString::number(mean, 'g', 4),
                              QString::number(low, 'g', 4), QString::number(high, 'g', 4),
                              format_count(spreads[k].all().count));
                      });
    return chart;
}

Chart layers_by_step_chart(const std::filesystem::path& trace, const std::string& run,
                           const std::string& signal, const std::stop_token& stop,
                           const std::optional<SequenceSpan>& rows) {
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo info = find_run(reader, run);
    const bool single = rows && rows->last == rows->first + 1;
    const SignalInfo what = find_signal(
        reader, info, signal, "layer_", "step and layer",
        [single](const SignalInfo& one) {
            return one.axes == std::vector<std::string>{"token", "step", "layer"} &&
                   (single || one.name != signal::layer_argmax);
        },
        "record the run with --record steps,layers, or choose another signal");
    const bool words = what.name == signal::layer_argmax;
    std::vector<Moments> means;
    std::size_t steps = 0;
    std::size_t layers = 0;
    const auto add = [&](const std::optional<SignalChunk>& chunk) {
        if (!chunk || chunk->shape[1] > most_columns || chunk->shape[2] > most_columns) {
            return;
        }
        if (means.empty()) {
            steps = static_cast<std::size_t>(chunk->shape[1]);
            layers = static_cast<std::size_t>(chunk->shape[2]);
            means.resize(steps * layers);
        }
        const std::vector<float> values = to_floats(*chunk);
        const bool whole = chunk->dtype == DType::i32;
        for (std::size_t i = 0; i < values.size() && values.size() % means.size() == 0; ++i) {
            const auto value = static_cast<double>(values[i]);
            // A rank of 0: the token had no target. Below 0: the step did not run.
            if (std::isfinite(value) && !(whole && value < (words ? 0 : 1))) {
                means[i % means.size()].add(value);
            }
        }
    };
    if (rows) {
        add(reader.signal(info.id, rows->sequence, what.name, rows->first, rows->last));
    } else {
        for_each_slice(reader, info, stop,
                       [&](const SequenceInfo& sequence, std::int64_t begin, std::int64_t end) {
                           add(reader.signal(info.id, sequence.number, what.name, begin, end));
                       });
    }
    Chart chart;
    chart.title = QString::fromStdString(what.shown_name());
    chart.x.label = step_word(info.step_unit);
    chart.y.label = u"layer"_s;
    chart.y.reversed = true; // the first layer at the top
    for (std::size_t k = 0; k < steps; ++k) {
        chart.x.names.push_back(QString::number(k));
    }
    for (const std::string& label : column_labels(what.description, layers)) {
        chart.y.names.push_back(QString::fromStdString(label));
    }
    const QString unit = QString::fromStdString(what.unit);
    const auto text_of = [&](const Moments& mean) {
        if (words) {
            const auto id = static_cast<std::int32_t>(mean.mean);
            return u"“%1”"_s.arg(type_name(id, reader.token_bytes(info.id, id)));
        }
        return single ? format_number(mean.mean) + (unit.isEmpty() ? QString() : u' ' + unit)
                      : u"mean %1 over %2 tokens"_s.arg(format_number(mean.mean), format_count(mean.count));
    };
    auto cells = Chart::Series::of(Chart::Mark::cell);
    double low = 0;
    double high = 0;
    for (std::size_t k = 0; k < steps; ++k) {
        for (std::size_t l = 0; l < layers; ++l) {
            const Moments& mean = means[k * layers + l];
            if (mean.count == 0) {
                continue;
            }
            cells.addCell(static_cast<double>(k), static_cast<double>(l), mean.mean,
                          u"layer %1 · %2 %3 · %4"_s.arg(chart.y.names[l], chart.x.label, QString::number(k),
                                                         text_of(mean)));
            cells.links.push_back(layer_link(chart.y.names[l].toInt(), static_cast<int>(k)));
            low = std::min(low, mean.mean);
            high = std::max(high, mean.mean);
        }
    }
    const ValueLook look = look_of(kind_of_signal(what), {low, std::max(high, -low)});
    const QString of = single ? u"value"_s : u"mean"_s;
    chart.scale = Chart::Scale{words            ? u"id"_s
                               : unit.isEmpty() ? of
                                                : u"%1 (%2)"_s.arg(of, unit),
                               look.scale.low, look.scale.high, look.diverging, look.scale.logarithmic};
    chart.series.push_back(std::move(cells));
    return chart;
}

Chart steps_by_type_chart(const std::filesystem::path& trace, const std::string& run, const std::string& by,
                          Attribution attribution, const std::stop_token& stop) {
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo info = find_run(reader, run);
    std::vector<std::int32_t> ids;
    std::vector<std::int64_t> positions;
    std::vector<double> nll;
    std::vector<double> steps;
    LayoutBuilder lying;
    for_each_scored(
        reader, info, stop,
        [&](const SequenceInfo& sequence, const TokenColumns& tokens, std::size_t i, std::int64_t position) {
            const std::size_t ahead = attribution == Attribution::predicted ? 1 : 0;
            if (i + ahead < tokens.size()) {
                lying.add(sequence, position);
                ids.push_back(tokens.id[i + ahead]);
                positions.push_back(position + static_cast<std::int64_t>(ahead));
                nll.push_back(static_cast<double>(tokens.nll[i]));
                steps.push_back(tokens.steps[i]);
            }
        });
    const auto bytes = [&](std::int32_t id) { return reader.token_bytes(info.id, id); };
    const TokenGrouping groups = by == "type"         ? group_by_type(ids, bytes)
                                 : by == "position"   ? group_by_position(positions)
                                 : by == "difficulty" ? group_by_fifths(nll)
                                                      : group_by_class(ids, bytes);
    const std::span<const double> series[] = {steps};
    const std::vector<std::size_t> units = units_of(lying.layout, choose_resampling(lying.layout, series));
    std::vector<GroupTotals> sums(groups.groups.size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (groups.group[i] >= 0) {
            sums[static_cast<std::size_t>(groups.group[i])].add(units[i], steps[i]);
        }
    }
    Chart chart;
    chart.title = u"%1 by token type"_s.arg(halting_title(HaltingChart::steps, info.step_unit));
    for (const TokenGrouping::Group& group : groups.groups) {
        chart.x.names.push_back(group_name(group, by));
    }
    const QString what = u"mean %1"_s.arg(steps_word(info.step_unit));
    chart.y.label = what;
    auto marks = Chart::Series::of(Chart::Mark::point);
    for (std::size_t g = 0; g < sums.size(); ++g) {
        const UnitMean mean = sums[g].mean();
        const auto [low, high] = bounded_interval(mean, static_cast<double>(info.max_steps));
        marks.add(static_cast<double>(g), mean.mean, low, high,
                  u"%1: %2 %3 [%4, %5] over %6 tokens"_s.arg(chart.x.names[g], what, format_nats(mean.mean),
                                                             format_nats(low, 3), format_nats(high, 3),
                                                             format_count(sums[g].count)));
        marks.links.push_back(groups.groups[g].id < 0 ? QString() : u"type:%1"_s.arg(groups.groups[g].id));
    }
    if (std::ranges::all_of(marks.y, [&](double y) { return y == marks.y.front(); })) {
        chart.y.low = -0.5; // all means are equal: show the whole range of steps
        chart.y.high = static_cast<double>(info.max_steps) + 0.5;
        chart.y.whole = true;
    }
    chart.series.push_back(std::move(marks));
    return chart;
}

} // namespace ponderscope
