// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/chart/chart_axis.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace Qt::StringLiterals;

namespace ponderscope {
namespace {

double tick_step(double extent, int most) {
    const double rough = extent / std::max(1, most);
    const double power = std::pow(10, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
        if (factor * power >= rough * (1 - 1e-9)) {
            return factor * power;
        }
    }
    return 10 * power;
}

/// Whether the range has room for ticks in 64-bit numbers. False for rounding errors.
bool are_apart(double low, double high) {
    return high - low > std::max(1e-300, 1e-12 * std::max(std::abs(low), std::abs(high)));
}

/// At most \p most round values (1, 2, 5 times a power of ten) within [low, high].
std::vector<double> round_ticks(double low, double high, int most) {
    std::vector<double> ticks;
    if (!are_apart(low, high)) {
        return {low};
    }
    const double step = tick_step(high - low, most);
    for (double k = std::ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k) {
        ticks.push_back(k * step);
    }
    return ticks;
}

/// Extends the range to round numbers.
AxisRange round_range(double low, double high, int most_ticks) {
    if (!are_apart(low, high)) {
        const double room = std::max(std::abs(low) * 0.05, 0.05);
        low -= room;
        high += room;
    }
    const double step = tick_step(high - low, most_ticks);
    return {std::floor(low / step + 1e-9) * step, std::ceil(high / step - 1e-9) * step};
}

/// The largest of 1, 2, 5 times a power of ten that is not above \p value.
double round_below(double value) {
    const double power = std::pow(10, std::floor(std::log10(value) + 1e-9));
    const double digit = value / power * (1 + 1e-9);
    return (digit >= 5 ? 5 : digit >= 2 ? 2 : 1) * power;
}

AxisRange range_of(const Chart& chart, bool horizontal) {
    constexpr int finest = 6; // constant, so that the range does not depend on the number of ticks
    const Chart::Axis& axis = horizontal ? chart.x : chart.y;
    if (!axis.names.empty()) {
        return {-0.5, static_cast<double>(axis.names.size()) - 0.5};
    }
    AxisRange range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
    bool bars = false;
    const auto add = [&](double value) {
        if (std::isfinite(value) && !(axis.log && value <= 0)) {
            range = {std::min(range.low, value), std::max(range.high, value)};
        }
    };
    for (const Chart::Series& series : chart.series) {
        for (const double value : horizontal ? series.x : series.y) {
            const double half = series.mark == Chart::Mark::cell ? (horizontal ? chart.dx : chart.dy) / 2
                                : series.mark == Chart::Mark::bar && horizontal ? 0.5
                                                                                : 0;
            add(value - half);
            add(value + half);
        }
        if (!horizontal) {
            for (const std::vector<double>* ends : {&series.low, &series.high}) {
                for (const double value : *ends) {
                    add(value);
                }
            }
            bars = bars || series.mark == Chart::Mark::bar;
        }
    }
    if (!(range.low <= range.high)) {
        return {axis.low.value_or(0), axis.high.value_or(1)};
    }
    if (axis.log) {
        // The reciprocals of 1, 2, 5 are 10, 5, 2 tenths, so rounding 1/high down rounds high up.
        AxisRange whole{round_below(range.low), 1 / round_below(1 / range.high)};
        if (!(whole.high > whole.low)) {
            whole.high = whole.low * 10;
        }
        return {axis.low.value_or(whole.low), axis.high.value_or(whole.high)};
    }
    if (bars || axis.from_zero) {
        range.low = std::min(0.0, range.low);
    }
    const bool exact = axis.whole || chart.has(Chart::Mark::cell);
    AxisRange result = range;
    if (!are_apart(range.low, range.high)) {
        const double room = std::max(std::abs(range.low) * 0.1, 0.5);
        result = {range.low - (range.low > 0 && bars ? 0 : room), range.high + room};
    } else if (!exact) {
        result = round_range(range.low, range.high, finest);
    }
    result.low = axis.low.value_or(result.low);
    result.high = axis.high.value_or(result.high);
    return result;
}

std::vector<double> logarithmic_ticks(AxisRange range, int most) {
    const auto low = static_cast<int>(std::ceil(std::log10(range.low) - 1e-9));
    const auto high = static_cast<int>(std::floor(std::log10(range.high) + 1e-9));
    const int every = std::max(1, (high - low + most - 1) / std::max(1, most - 1));
    std::vector<double> ticks;
    for (int power = low; power <= high; power += every) {
        ticks.push_back(std::pow(10, power));
    }
    if (ticks.size() < 3) {
        ticks.clear();
        for (int power = low - 1; power <= high; ++power) {
            for (const double digit : {1.0, 2.0, 5.0}) {
                const double tick = digit * std::pow(10, power);
                if (tick >= range.low * (1 - 1e-9) && tick <= range.high * (1 + 1e-9)) {
                    ticks.push_back(tick);
                }
            }
        }
    }
    return ticks;
}

} // namespace

QString tick_label(double value, double step) {
    if (step > 0) {
        const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 9);
        QString text = QString::number(std::abs(value) < step * 1e-6 ? 0.0 : value, 'f', decimals);
        return text.replace(u'-', QChar(0x2212));
    }
    if (std::abs(value) < 1e-12) {
        return u"0"_s;
    }
    QString text = QString::number(value, 'g', std::abs(value) >= 1000 && std::abs(value) < 1e6 ? 7 : 4);
    if (const qsizetype e = text.indexOf(u'e'); e >= 0) { // 10⁶, 2·10⁻⁵
        constexpr char16_t digits[] = u"⁰¹²³⁴⁵⁶⁷⁸⁹";
        QString power;
        for (const QChar digit : QString::number(text.mid(e + 1).toInt())) {
            power += digit == u'-' ? QChar(u'⁻') : QChar(digits[digit.digitValue()]);
        }
        const QString factor = text.left(e);
        text = (factor == u'1' ? QString() : factor == u"-1" ? u"-"_s : factor + u'·') + u"10"_s + power;
    }
    return text.replace(u'-', QChar(0x2212));
}

ChartAxis::ChartAxis(const Chart& chart, bool horizontal_data, int most)
    : ChartAxis(horizontal_data ? chart.x : chart.y, range_of(chart, horizontal_data), most) {}

ChartAxis::ChartAxis(const Chart::Axis& axis, AxisRange range, int most) : axis_(axis), range_(range) {
    constexpr double least = 1e-300;          // smaller 64-bit numbers lose precision
    if (axis_.log && !(range_.low > least)) { // no positive value, or a limit that is not positive
        range_.low = range_.high > 10 * least ? range_.high / 10 : 1;
    }
    if (!are_apart(range_.low, range_.high)) { // the one given end is beyond all values
        range_.high = range_.low + std::max(std::abs(range_.low) * 0.1, 1.0);
    }
    if (axis_.si && axis_.names.empty()) {
        const char* prefixes[] = {"k", "M", "G", "T", "P", "E"};
        const double largest = std::max(std::abs(range_.low), std::abs(range_.high));
        for (const char* prefix : prefixes) {
            if (largest < unit_ * 1000) {
                break;
            }
            unit_ *= 1000;
            prefix_ = QString::fromLatin1(prefix);
        }
    }
    setMostTicks(most);
}

void ChartAxis::setMostTicks(int most, int least) {
    if (!axis_.names.empty()) {
        const std::size_t count = axis_.names.size();
        const std::size_t every = (count + static_cast<std::size_t>(std::max(1, most)) - 1) /
                                  static_cast<std::size_t>(std::max(1, most));
        ticks_.clear();
        for (std::size_t place = 0; place < count; place += every) {
            ticks_.push_back(static_cast<double>(place));
        }
        return;
    }
    if (axis_.log) {
        ticks_ = logarithmic_ticks(range_, std::max(most, least));
        return;
    }
    // If a step gives too few ticks, try a finer step.
    for (int wanted = std::max(most, 1);; ++wanted) {
        ticks_ = round_ticks(range_.low, range_.high, wanted);
        if (axis_.whole) {
            std::erase_if(ticks_, [](double tick) { return std::abs(tick - std::round(tick)) > 1e-6; });
        }
        if (static_cast<int>(ticks_.size()) >= least || wanted >= most + 8) {
            break;
        }
    }
    step_ = ticks_.size() > 1 ? ticks_[1] - ticks_[0] : 0;
}

QString ChartAxis::label(double tick) const {
    if (!axis_.names.empty()) {
        return axis_.names[static_cast<std::size_t>(tick)];
    }
    return tick_label(tick / unit_, axis_.log ? 0 : step_ / unit_);
}

QString ChartAxis::title() const {
    return prefix_.isEmpty() || axis_.label.isEmpty() ? axis_.label : u"%1 (%2)"_s.arg(axis_.label, prefix_);
}

double ChartAxis::share(double value) const {
    if (axis_.log && !(value > 0)) {
        return -0.1;
    }
    const double share =
        axis_.log ? (std::log(value) - std::log(range_.low)) / (std::log(range_.high) - std::log(range_.low))
                  : (value - range_.low) / (range_.high - range_.low);
    return axis_.reversed ? 1 - share : share;
}

} // namespace ponderscope
