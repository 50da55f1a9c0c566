// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/depth/depth_charts.h"

#include "core/base/error.h"
#include "core/stats/run_comparison.h"
#include "core/stats/token_dependence.h"
#include "core/trace/recorded_choices.h"
#include "views/common/colour_map.h"
#include "views/common/format.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <tuple>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

/// The map's column with the weight of a source layer; no value: no column has its name.
std::optional<std::int64_t> column_of(const DepthMap& map, std::int64_t source, std::int64_t layer) {
    const std::vector<std::string>& labels = map.source_labels();
    const auto find = [&](const std::string& label) -> std::optional<std::int64_t> {
        const auto found = std::ranges::find(labels, label);
        return found == labels.end() ? std::nullopt : std::optional<std::int64_t>(found - labels.begin());
    };
    const auto anchor = find(std::to_string(source));
    return anchor ? anchor : find(std::to_string(layer - source) + " before");
}

/// The mean weight of a source; NaN if the layer does not read it.
double weight_of(const DepthMap& map, const DepthMap::Averages& averages, const AblatedSource& what) {
    double sum = 0;
    std::int64_t count = 0;
    for (std::int64_t layer = 0; layer < map.layers(); ++layer) {
        const auto column = column_of(map, what.source, layer);
        if ((what.layer && *what.layer != layer) || layer <= what.source || !column) {
            continue;
        }
        const float mean = averages.mean[static_cast<std::size_t>(layer * map.sources() + *column)];
        if (!std::isnan(mean)) {
            sum += static_cast<double>(mean);
            ++count;
        }
    }
    return count > 0 ? sum / static_cast<double>(count) : std::nan("");
}

QString name_of(const AblatedSource& what) {
    return what.layer ? u"source %1 in layer %2"_s.arg(what.source).arg(*what.layer)
                      : u"source %1 in all layers"_s.arg(what.source);
}

} // namespace

std::vector<AblatedSource> ablated_sources(const RunInfo& run) {
    static const std::regex form(
        "Changed for this run: the value of layer (\\d{1,9}) is left out of the depth "
        "attention of (?:all layers|layer (\\d{1,9}));");
    std::vector<AblatedSource> found;
    for (const std::string& sentence : notices_of(run)) {
        if (std::smatch parts;
            std::regex_search(sentence, parts, form, std::regex_constants::match_continuous)) {
            AblatedSource& one = found.emplace_back(AblatedSource{std::stoll(parts[1]), std::nullopt});
            if (parts[2].matched) {
                one.layer = std::stoll(parts[2]);
            }
        }
    }
    return found;
}

SignalInfo depth_signal(const TraceReader& reader, const RunInfo& run) {
    for (const SignalInfo& info : reader.signal_infos(run.id)) {
        if (DepthMap::fits(info)) {
            return info;
        }
    }
    throw InputError(ErrorId::run_unsuited, reader.path(), "a run with weights by layer and source",
                     "run \"" + run.name + "\" without such weights",
                     "choose a run of a model with depth attention, recorded without --policy and --record "
                     "layers");
}

DepthMap sampled_depth(const TraceReader& reader, const RunInfo& run, const SignalInfo& info,
                       const std::stop_token& stop, std::optional<std::int64_t> only) {
    constexpr std::int64_t slices = 16;
    constexpr std::int64_t slice = DepthMap::most_rows / slices;
    SignalChunk rows;
    std::vector<std::int32_t> executed;
    std::int64_t before = 0; // tokens of the previous sequences
    std::int64_t next = 0;   // start of the next slice, counted over the whole run
    std::vector<SequenceInfo> sequences = reader.sequences(run.id);
    std::erase_if(sequences, [&](const SequenceInfo& one) { return only && one.number != *only; });
    std::int64_t tokens = 0;
    for (const SequenceInfo& sequence : sequences) {
        tokens += sequence.tokens;
    }
    const std::int64_t apart = std::max<std::int64_t>(slice, (tokens + slices - 1) / slices);
    for (const SequenceInfo& sequence : sequences) {
        while (next < before + sequence.tokens) {
            throw_if_stopped(stop);
            const std::int64_t begin = std::max<std::int64_t>(0, next - before);
            const std::int64_t end = std::min(begin + slice, sequence.tokens);
            const auto chunk = reader.signal(run.id, sequence.number, info.name, begin, end);
            if (chunk && chunk->shape.size() == info.axes.size()) {
                if (rows.shape.empty()) {
                    rows.dtype = chunk->dtype;
                    rows.shape = chunk->shape;
                    rows.shape[0] = 0;
                }
                if (chunk->dtype == rows.dtype &&
                    std::equal(chunk->shape.begin() + 1, chunk->shape.end(), rows.shape.begin() + 1)) {
                    rows.shape[0] += chunk->shape[0];
                    rows.data.insert(rows.data.end(), chunk->data.begin(), chunk->data.end());
                    const std::vector<std::int32_t> steps =
                        reader.tokens(run.id, sequence.number, begin, begin + chunk->shape[0]).steps;
                    executed.insert(executed.end(), steps.begin(), steps.end());
                }
            }
            next += apart;
        }
        before += sequence.tokens;
    }
    if (rows.shape.empty()) {
        throw InputError(ErrorId::run_unsuited, reader.path(),
                         "values of \"" + info.name + "\" in run \"" + run.name + "\"", "no value",
                         "record the run again");
    }
    return {rows, info, std::move(executed)};
}

bool ablates(const RunInfo& candidate, const RunInfo& base) {
    return candidate.checkpoint_digest == base.checkpoint_digest &&
           candidate.text_digest == base.text_digest && candidate.method == base.method &&
           candidate.policy == base.policy && candidate.scored_tokens > 0 && ablated_sources(base).empty() &&
           ablated_sources(candidate).size() == 1;
}

std::vector<AblationEffect>
ablation_effects(const std::filesystem::path& trace, const std::string& run,
                 const std::vector<std::pair<std::filesystem::path, std::string>>& candidates,
                 const BootstrapOptions& options) {
    const TraceReader reader = TraceReader::open(trace);
    const RunInfo base = find_run(reader, run);
    const DepthMap map = sampled_depth(reader, base, depth_signal(reader, base), options.stop);
    const DepthMap::Averages averages = map.averages(-1, -1);
    std::vector<AblationEffect> effects;
    for (const auto& [path, name] : candidates) {
        const TraceReader other = TraceReader::open(path);
        const RunInfo candidate = find_run(other, name);
        if (!ablates(candidate, base)) {
            continue;
        }
        ComparisonRequest request;
        request.runs = {{path, name}, {trace, run}}; // the run without the source, minus the base run
        request.block = options.block;
        request.replicates = options.replicates;
        const AblatedSource what = ablated_sources(candidate).front();
        effects.push_back({candidate.name, what, weight_of(map, averages, what),
                           compare_runs(request, {}, options.stop).runs[1].difference});
    }
    std::ranges::sort(effects, [](const AblationEffect& a, const AblationEffect& b) {
        return std::tuple(a.what.layer.value_or(-1), a.what.source) <
               std::tuple(b.what.layer.value_or(-1), b.what.source);
    });
    return effects;
}

Chart depth_weights_chart(const DepthMap& map, const DepthMap::Averages& averages, DepthShown shown,
                          const std::vector<float>& token) {
    Chart chart;
    chart.title = u"Weights by layer and source"_s;
    chart.x.label = QString::fromStdString(map.source_name());
    for (const std::string& label : map.source_labels()) {
        chart.x.names.push_back(QString::fromStdString(label));
    }
    chart.y.label = QString::fromStdString(map.layer_name());
    chart.y.reversed = true; // the first layer at the top
    chart.note = u"Weights are not causes."_s;
    const auto depends = [&](std::size_t layer) {
        return !(averages.token_share[layer] < TokenDependence::usual_threshold);
    };
    for (std::size_t layer = 0; layer < averages.token_share.size(); ++layer) {
        chart.y.names.push_back(QString::number(layer) + (depends(layer) ? QString() : u"*"_s));
        if (!depends(layer) && !chart.note.contains(u'*')) {
            chart.note += u" *: weights hardly vary by token."_s;
        }
    }
    const std::vector<float>& values = shown == DepthShown::token  ? token
                                       : shown == DepthShown::mean ? averages.mean
                                                                   : averages.deviation;
    const QString name = shown == DepthShown::token  ? u"weight"_s
                         : shown == DepthShown::mean ? u"mean weight"_s
                                                     : u"SD of the weight"_s;
    auto cells = Chart::Series::of(Chart::Mark::cell);
    double high = 0;
    for (std::int64_t layer = 0; layer < map.layers(); ++layer) {
        for (std::int64_t source = 0; source < map.sources(); ++source) {
            const auto place = static_cast<std::size_t>(layer * map.sources() + source);
            const auto value = static_cast<double>(values[place]);
            if (std::isnan(value)) {
                continue;
            }
            cells.addCell(static_cast<double>(source), static_cast<double>(layer), value,
                          u"%1 %2, %3 %4: %5 %6"_s.arg(chart.y.label, QString::number(layer), chart.x.label,
                                                       chart.x.names[static_cast<std::size_t>(source)], name,
                                                       format_probability(value)) +
                              (shown == DepthShown::mean ? u" ± "_s + format_probability(static_cast<double>(
                                                                          averages.deviation[place]))
                                                         : QString()));
            high = std::max(high, value);
        }
    }
    const bool own_end = high > 0 && (shown == DepthShown::spread || high > 1);
    chart.scale = Chart::Scale{name, 0, own_end ? nice_ceiling(high) : 1.0, false};
    chart.series.push_back(std::move(cells));
    return chart;
}

Chart depth_ablation_chart(const std::vector<AblationEffect>& effects) {
    Chart chart;
    chart.title = u"Weight against effect"_s;
    chart.x.label = u"mean weight of the source"_s;
    chart.x.from_zero = true;
    chart.y.label = u"NLL without the source minus NLL with it (nats)"_s;
    chart.note = u"Weights are not causes: the source with the largest weight may have little effect."_s;
    auto points = Chart::Series::of(Chart::Mark::point);
    double high = 0;
    for (const AblationEffect& effect : effects) {
        const Estimate& change = effect.difference;
        points.add(effect.weight, change.value, change.low, change.high,
                   u"%1: weight %2, ΔNLL without it: %3 [%4, %5]"_s.arg(
                       name_of(effect.what), format_probability(effect.weight),
                       format_difference(change.value, 4), format_difference(change.low, 4),
                       format_difference(change.high, 4)));
        high = std::isfinite(effect.weight) ? std::max(high, effect.weight) : high;
    }
    chart.series = {Chart::Series::reference(0, 0, high > 0 ? high : 1, 0), std::move(points)};
    return chart;
}

} // namespace ponderscope
