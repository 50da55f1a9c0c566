// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/common/value_look.h"

#include "views/common/format.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

using namespace Qt::StringLiterals;

namespace ponderscope {

namespace {

QString unsigned_text(NumberKind kind, double value) {
    switch (kind) {
    case NumberKind::nats:
        return format_nats(value);
    case NumberKind::probability:
        return format_probability(value);
    case NumberKind::count:
    case NumberKind::rank:
        return std::isnan(value) ? format_nats(value)
                                 : format_count(std::llround(std::clamp(value, -9e15, 9e15)));
    case NumberKind::operations:
        return format_si(value);
    case NumberKind::plain:
    case NumberKind::category:
        return format_number(value);
    }
    return {};
}

QString with_sign(double value, const QString& magnitude, const QString& zero) {
    return std::isnan(value) || magnitude == zero ? magnitude
           : value < 0                            ? QChar(0x2212) + magnitude
                                                  : u'+' + magnitude;
}

} // namespace

ValueKind kind_of_signal(const SignalInfo& info) {
    const std::string_view name = info.name;
    if (name == signal::rank || name == signal::layer_rank) {
        return {NumberKind::rank, false, 0};
    }
    if (name == signal::nll || name == signal::entropy || name == signal::layer_nll ||
        name == signal::layer_entropy) {
        return {NumberKind::nats, false, 0};
    }
    return {info.unit == "probability" ? NumberKind::probability : NumberKind::plain, false, 0};
}

ValueKind kind_of_annotation(const QString& name, bool category) {
    return {category ? NumberKind::category : NumberKind::plain, !category && name.contains(u"_minus_"_s), 0};
}

template <typename T>
ValueSpread spread_of(std::span<const T> values) {
    ValueSpread spread{std::numeric_limits<double>::quiet_NaN(), 0};
    std::vector<double> sample;
    const std::size_t stride = std::max<std::size_t>(1, values.size() / 20'000);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<double>(values[i]);
        if (!std::isfinite(value)) {
            continue;
        }
        spread.least = std::isnan(spread.least) ? value : std::min(spread.least, value);
        if (i % stride == 0) {
            sample.push_back(std::fabs(value));
        }
    }
    if (!sample.empty()) {
        const auto place =
            sample.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(sample.size() - 1) * 0.98);
        std::nth_element(sample.begin(), place, sample.end());
        spread.size = *place;
    }
    return spread;
}

template ValueSpread spread_of(std::span<const float> values);
template ValueSpread spread_of(std::span<const double> values);

QString ValueLook::text(double value) const {
    if (!isSigned()) {
        return unsigned_text(kind.number, value);
    }
    return with_sign(value, unsigned_text(kind.number, std::fabs(value)), unsigned_text(kind.number, 0));
}

QString ValueLook::end(double value) const {
    const auto number = [this](double magnitude) {
        return kind.number == NumberKind::operations ? format_si(magnitude) : format_number(magnitude);
    };
    return isSigned() ? with_sign(value, number(std::fabs(value)), number(0)) : number(value);
}

void ValueLook::hold(const HeldRange& range) {
    if (!range || kind.number == NumberKind::category) {
        return;
    }
    const auto [low, high] = *range;
    scale = diverging ? ColourScale::symmetric(std::max(std::fabs(low), std::fabs(high)))
                      : ColourScale{low, high, scale.logarithmic && low > 0};
    held = true;
}

ValueLook look_of(const ValueKind& kind, const ValueSpread& spread) {
    const double size = std::isfinite(spread.size) ? spread.size : 0;
    ValueLook look;
    look.kind = kind;
    if (kind.number == NumberKind::category) {
        look.scale = ColourScale::classes();
        return look;
    }
    if (kind.difference || spread.least < 0) {
        look.diverging = true;
        look.scale = ColourScale::symmetric(nice_ceiling(size));
        return look;
    }
    switch (kind.number) {
    case NumberKind::nats: {
        // Most texts share one scale, so that equal values have equal colours in all sequences and runs.
        constexpr double usual = 8;
        look.scale = {0, size > usual ? nice_ceiling(size) : usual, false};
        break;
    }
    case NumberKind::rank:
        look.scale = {1, std::pow(10, std::ceil(std::log10(std::max(size, 10.0)) - 1e-9)), true};
        break;
    case NumberKind::probability:
        look.scale = {0, 1, false};
        break;
    case NumberKind::count:
        look.scale = {0, std::max(kind.known_end > 0 ? kind.known_end : nice_ceiling(size), 1.0), false};
        break;
    default:
        look.scale = {0, nice_ceiling(size), false};
    }
    return look;
}

} // namespace ponderscope
