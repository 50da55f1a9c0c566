// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/training/training_charts.h"

#include "core/base/error.h"
#include "core/trace/reader.h"
#include "views/common/format.h"
#include "views/common/paths.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

namespace quantity = training_quantity;

/// About the largest number of points in a line, because a chart is not wider in pixels.
constexpr std::size_t most_points = 1500;

/// Whether the quantity is measured at every step, and therefore noisy.
bool is_measured_each_step(std::string_view name) {
    return !name.starts_with("held_out_") && name != quantity::learning_rate;
}

/// The unit of time with short numbers on the axis.
struct TimeUnit {
    double seconds = 1;
    QString label;
};

TimeUnit unit_of(std::span<const TrainingRecord> trainings) {
    double longest = 0;
    for (const TrainingRecord& training : trainings) {
        longest = std::max(longest, training.info.seconds);
    }
    return longest > 7200  ? TimeUnit{3600, u"time (h)"_s}
           : longest > 240 ? TimeUnit{60, u"time (min)"_s}
                           : TimeUnit{1, u"time (s)"_s};
}

double place_of(const TrainingCurve& curve, std::size_t i, const std::string& axis, const TimeUnit& unit) {
    return axis == "seconds"  ? curve.seconds[i] / unit.seconds
           : axis == "tokens" ? static_cast<double>(curve.tokens[i])
                              : static_cast<double>(curve.step[i]);
}

/// The drawn points: all, or the lowest and the highest of every section, so that outliers stay visible.
std::vector<std::size_t> drawn_points(std::span<const double> values) {
    std::vector<std::size_t> chosen;
    const std::size_t stretch = values.size() <= most_points ? 1 : 2 * values.size() / most_points + 1;
    for (std::size_t begin = 0; begin < values.size(); begin += stretch) {
        const std::size_t end = std::min(begin + stretch, values.size());
        std::size_t low = begin;
        std::size_t high = begin;
        for (std::size_t i = begin; i < end; ++i) {
            low = values[i] < values[low] ? i : low;
            high = values[i] > values[high] ? i : high;
        }
        chosen.push_back(std::min(low, high));
        if (low != high) {
            chosen.push_back(std::max(low, high));
        }
    }
    if (!values.empty() && chosen.back() + 1 != values.size()) {
        chosen.push_back(values.size() - 1);
    }
    return chosen;
}

QString number(double value) {
    const double size = std::abs(value);
    return !std::isfinite(value)                       ? QStringView(no_value).toString()
           : size != 0 && (size < 0.01 || size >= 1e5) ? QString::number(value, 'g', 3)
                                                       : QString::number(value, 'f', 3);
}

class Builder {
public:
    Builder(std::span<const TrainingRecord> trainings, const TrainingChartOptions& options)
        : trainings_(trainings), options_(options), unit_(unit_of(trainings)) {
        Chart::Axis& x = result.x;
        x.si = options.axis != "seconds";
        x.label = x.si ? QString::fromStdString(options.axis) : unit_.label;
    }

    Chart result;

    void line(std::size_t training, const TrainingCurve& curve, const std::string& what,
              std::span<const double> values, const QString& name, int ink, bool dashed, bool faint) {
        auto series = Chart::Series::of(Chart::Mark::line, ink, name);
        series.dashed = dashed;
        series.faint = faint;
        for (const std::size_t i : drawn_points(values)) {
            series.add(place_of(curve, i, options_.axis, unit_), values[i],
                       label(training, curve, i, what, values[i]));
        }
        result.series.push_back(std::move(series));
    }

    /// Adds a curve. A noisy quantity is smoothed if requested, with the measured values faintly behind it.
    void curve(std::size_t training, const TrainingCurve& curve, const QString& name, int ink, bool dashed) {
        const std::string& what = curve.quantity;
        if (options_.smoothing > 0 && is_measured_each_step(what)) {
            line(training, curve, what, curve.value, {}, ink, false, true);
            line(training, curve, what, smoothed(curve.value, options_.smoothing), name, ink, dashed, false);
        } else {
            line(training, curve, what, curve.value, name, ink, dashed, false);
        }
    }

private:
    QString label(std::size_t training, const TrainingCurve& curve, std::size_t i, const std::string& what,
                  double value) const {
        const TrainingQuantity* found = trainings_[training].quantity(what);
        QString name =
            QString::fromStdString(found != nullptr && !found->title.empty() ? found->title : what);
        if (found != nullptr && !found->axis.empty()) {
            name += u", %1 %2"_s.arg(QString::fromStdString(found->axis), QString::number(curve.place));
        }
        return u"%1, step %2, %3 tokens, %4: %5 %6"_s.arg(
            QString::fromStdString(trainings_[training].info.name), format_count(curve.step[i]),
            format_count(curve.tokens[i]), format_duration(curve.seconds[i]), name, number(value));
    }

    std::span<const TrainingRecord> trainings_;
    TrainingChartOptions options_;
    TimeUnit unit_;
};

/// Adds a quantity of the training text with the same quantity on held-out text.
void pair_of_curves(Builder& builder, std::span<const TrainingRecord> trainings, const char* trained,
                    const char* held_out) {
    bool named_held_out = false;
    for (std::size_t t = 0; t < trainings.size(); ++t) {
        const int ink = static_cast<int>(t);
        const QString name =
            trainings.size() > 1 ? QString::fromStdString(trainings[t].info.name) : u"training"_s;
        const TrainingCurve* first = trainings[t].curve(trained);
        const TrainingCurve* second = trainings[t].curve(held_out);
        if (first != nullptr) {
            builder.curve(t, *first, name, ink, false);
        }
        if (second != nullptr) {
            builder.curve(t, *second,
                          named_held_out         ? QString()
                          : trainings.size() > 1 ? u"held-out, dashed"_s
                                                 : u"held-out"_s,
                          ink, true);
            named_held_out = true;
        }
    }
}

/// Sets the axes: from the beginning to the last point, and as high as the values reach, so that details of a
/// curve are visible. There is room below and above.
Chart finished(Chart chart) {
    // Faint series come first, behind all others.
    std::ranges::stable_partition(chart.series, [](const Chart::Series& series) { return series.faint; });
    double last = 0;
    double low = std::numeric_limits<double>::infinity();
    double high = -low;
    for (const Chart::Series& series : chart.series) {
        for (std::size_t i = 0; i < series.x.size(); ++i) {
            if (std::isfinite(series.x[i]) && std::isfinite(series.y[i])) {
                last = std::max(last, series.x[i]);
                low = std::min(low, series.y[i]);
                high = std::max(high, series.y[i]);
            }
        }
    }
    if (last > 0 && low <= high) {
        const double room = low < high ? 0.06 * (high - low) : std::max(0.1 * std::abs(low), 1e-6);
        chart.x.low = 0;
        chart.x.high = last * 1.02;
        chart.y.low = low - room;
        chart.y.high = high + room;
    }
    return chart;
}

} // namespace

const TrainingCurve* TrainingRecord::curve(std::string_view name, std::int64_t place) const {
    const auto found = std::ranges::find_if(curves, [&](const TrainingCurve& one) {
        return one.quantity == name && one.place == place && one.size() > 0;
    });
    return found == curves.end() ? nullptr : &*found;
}

const TrainingQuantity* TrainingRecord::quantity(std::string_view name) const {
    const auto found = std::ranges::find(quantities, name, &TrainingQuantity::name);
    return found == quantities.end() ? nullptr : &*found;
}

std::vector<TrainingRecord> read_trainings(const std::filesystem::path& trace, const std::stop_token& stop) {
    const TraceReader reader = TraceReader::open(trace);
    std::vector<TrainingRecord> records;
    for (const TrainingInfo& info : reader.trainings()) {
        throw_if_stopped(stop);
        records.push_back(
            {trace, info, reader.training_quantities(info.id), reader.training_curves(info.id)});
    }
    return records;
}

std::vector<TrainingRecord> trainings_named(const std::filesystem::path& trace, const std::string& name,
                                            const std::stop_token& stop) {
    std::vector<TrainingRecord> all = read_trainings(trace, stop);
    if (all.empty()) {
        throw InputError(ErrorId::trace_run, trace, "a trace with a training", "a trace without trainings",
                         "choose training.ponder in the output folder of ponderscope train");
    }
    if (name.empty()) {
        return all;
    }
    std::string names;
    for (TrainingRecord& one : all) {
        if (one.info.name == name || std::to_string(one.info.id) == name) {
            return {std::move(one)};
        }
        names += (names.empty() ? "" : ", ") + one.info.name;
    }
    throw InputError(ErrorId::trace_run, trace, "one of the trainings " + names, "the name " + name,
                     "choose one of these trainings");
}

Chart training_chart(std::span<const TrainingRecord> trainings, const std::string& what,
                     const TrainingChartOptions& options) {
    Builder builder(trainings, options);
    Chart& chart = builder.result;
    QStringList states;
    for (const TrainingRecord& training : trainings) {
        states << training_state(training.info);
    }
    states.removeAll(QString());
    chart.note = states.join(u". "_s);
    if (what == quantity::loss) {
        chart.title = u"Loss"_s;
        chart.y.label = u"Loss (nats a token)"_s;
        pair_of_curves(builder, trainings, quantity::loss, quantity::held_out_nll);
        return finished(std::move(builder.result));
    }
    if (what == quantity::mean_steps) {
        chart.title = u"Mean steps"_s;
        chart.y.label = u"Mean steps per token"_s;
        pair_of_curves(builder, trainings, quantity::mean_steps, quantity::held_out_mean_steps);
        return finished(std::move(builder.result));
    }
    chart.title = QString::fromStdString(what);
    QString unit;
    for (const TrainingRecord& training : trainings) {
        if (const TrainingQuantity* found = training.quantity(what)) {
            chart.title = QString::fromStdString(found->title.empty() ? what : found->title);
            unit = QString::fromStdString(found->unit);
            break;
        }
    }
    chart.y.label = unit.isEmpty() ? chart.title : u"%1 (%2)"_s.arg(chart.title, unit);
    for (std::size_t t = 0; t < trainings.size(); ++t) {
        const TrainingQuantity* const found = trainings[t].quantity(what);
        const bool axis = found != nullptr && !found->axis.empty();
        bool first = true;
        for (const TrainingCurve& curve : trainings[t].curves) {
            if (curve.quantity != what || curve.size() == 0) {
                continue;
            }
            const bool alone = trainings.size() == 1;
            const int ink = static_cast<int>(alone ? static_cast<std::size_t>(curve.place) : t);
            const QString name = alone && axis     ? u"%1 %2"_s.arg(QString::fromStdString(found->axis),
                                                                    QString::number(curve.place))
                                 : !alone && first ? QString::fromStdString(trainings[t].info.name)
                                                   : QString();
            builder.curve(t, curve, name, ink, !alone && curve.place % 2 == 1);
            first = false;
        }
    }
    return finished(std::move(builder.result));
}

std::vector<TrainingQuantity> further_quantities(std::span<const TrainingRecord> trainings) {
    std::set<std::string> seen{quantity::loss, quantity::held_out_nll, quantity::mean_steps,
                               quantity::held_out_mean_steps};
    std::vector<TrainingQuantity> further;
    for (const TrainingRecord& training : trainings) {
        for (const TrainingQuantity& one : training.quantities) {
            const bool written = std::ranges::any_of(training.curves, [&](const TrainingCurve& curve) {
                return curve.quantity == one.name && curve.size() > 0;
            });
            if (written && seen.insert(one.name).second) {
                further.push_back(one);
            }
        }
    }
    std::ranges::stable_sort(further,
                             [](const auto& a, const auto& b) { return !a.axis.empty() && b.axis.empty(); });
    return further;
}

QString training_state(const TrainingInfo& training) {
    const QString name = QString::fromStdString(training.name);
    if (!training.fault.empty()) {
        return u"%1: %2"_s.arg(name, QString::fromStdString(training.fault));
    }
    return training.complete || training.planned_steps <= 0
               ? QString()
               : u"%1: step %2 of %3"_s.arg(name, format_count(training.step),
                                            format_count(training.planned_steps));
}

std::vector<double> smoothed(std::span<const double> values, double weight) {
    std::vector<double> result;
    result.reserve(values.size());
    double sum = 0;
    double mass = 0;
    for (const double value : values) {
        if (!std::isfinite(value)) {
            result.push_back(value);
            continue;
        }
        sum = weight * sum + value;
        mass = weight * mass + 1;
        result.push_back(sum / mass);
    }
    return result;
}

} // namespace ponderscope
