// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/map_options.h"

#include "core/trace/reader.h"
#include "views/common/colour_ranges.h"
#include "views/common/format.h"
#include "views/common/theme.h"

#include <QActionGroup>
#include <QInputDialog>
#include <QLineEdit>
#include <QMenu>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace ponderscope {

namespace {

constexpr double merged_from = 8; ///< tokens in a pixel

} // namespace

MapOptions::MapOptions(Theme& theme, StepMapCanvas& canvas, QWidget* parent)
    : QToolButton(parent), canvas_(canvas) {
    setText(tr("Scale and rows"));
    setAccessibleName(tr("Scale and rows of the map"));
    setPopupMode(QToolButton::InstantPopup);
    setAutoRaise(true);
    setFont(theme.small());
    connect(&theme, &Theme::changed, this, [this, &theme] { setFont(theme.small()); });
    buildMenu();
}

void MapOptions::setClip(Clip clip) {
    clip_ = clip;
    Q_EMIT changed();
}

void MapOptions::setCentre(Centre centre, double value) {
    centre_ = centre;
    value_ = value;
    Q_EMIT changed();
}

void MapOptions::setScaleLocked(bool locked) {
    locked_.reset();
    if (locked && canvas_.map() != nullptr) {
        locked_ = canvas_.look();
    }
    Q_EMIT changed();
}

void MapOptions::apply() {
    const StepMap* map = canvas_.map();
    if (map == nullptr) {
        return;
    }
    ValueLook look = map->look();
    ColourScale& scale = look.scale;
    if (clip_ == Clip::usual && canvas_.tokensPerPixel() >= merged_from && !scale.logarithmic) {
        // Means of many tokens lie close together: a scale for single tokens would show them in one colour.
        if (const std::vector<float> drawn = canvas_.mergedValues(); !drawn.empty()) {
            const auto at = [&](double share) {
                return static_cast<double>(
                    drawn[static_cast<std::size_t>(share * static_cast<double>(drawn.size() - 1))]);
            };
            const double step = std::pow(10, std::floor(std::log10(std::max(at(0.99) - at(0.01), 1e-9)))) / 2;
            scale = {std::floor(at(0.01) / step) * step, std::ceil(at(0.99) / step) * step, false};
            if (!(scale.high > scale.low)) {
                scale.high = scale.low + step;
            }
        }
    } else if (clip_ != Clip::usual) {
        const double share = clip_ == Clip::one_percent ? 0.01 : clip_ == Clip::five_percent ? 0.05 : 0;
        const double low = map->quantile(share);
        const double high = map->quantile(1 - share);
        if (low < high) {
            scale = {low, high, scale.logarithmic && low > 0};
        }
    }
    if (const HeldRange held =
            ranges_ == nullptr ? HeldRange() : ranges_->held(QString::fromStdString(map->info().name))) {
        scale = {(*held)[0], (*held)[1], scale.logarithmic && (*held)[0] > 0};
    }
    look.diverging = centre_ == Centre::automatic ? look.diverging : centre_ != Centre::none;
    if (look.diverging) {
        const double middle = centre_ == Centre::median  ? map->quantile(0.5)
                              : centre_ == Centre::value ? value_
                                                         : 0;
        const double centre = std::isfinite(middle) ? middle : 0;
        // As far to both sides, so that equal distances have equal strength.
        const double reach = std::max({std::abs(scale.low - centre), std::abs(scale.high - centre), 1e-12});
        scale = {centre - reach, centre + reach, false};
    }
    canvas_.setLook(locked_ ? *locked_ : look);
}

void MapOptions::setRanges(ColourRanges& ranges) {
    ranges_ = &ranges;
    connect(&ranges, &ColourRanges::changed, this, &MapOptions::changed);
    menu()->addSeparator();
    menu()->addAction(tr("Ends of the scale…"), this, &MapOptions::askForRange);
}

void MapOptions::askForRange() {
    if (const StepMap* map = canvas_.map()) {
        const QString name = QString::fromStdString(map->info().name);
        HeldRange range = ranges_->held(name);
        if (ask_for_range(window(), canvas_.scale(), range)) {
            ranges_->hold(name, range);
        }
    }
}

void MapOptions::askForCentre() {
    bool given = false;
    const QString typed = QInputDialog::getText(window(), tr("Two colours"), tr("Divided at"),
                                                QLineEdit::Normal, QString::number(value_, 'g', 8), &given);
    if (const auto value = typed_number(typed); given && value) {
        setCentre(Centre::value, *value);
    }
}

void MapOptions::buildMenu() {
    auto* menu = new QMenu(this);
    const auto choices = [this,
                          menu](const QString& title,
                                std::initializer_list<std::pair<QString, std::function<void()>>> entries) {
        QMenu* one = menu->addMenu(title);
        auto* group = new QActionGroup(one);
        for (const auto& [text, chosen] : entries) {
            QAction* action = one->addAction(text, this, chosen);
            action->setCheckable(true);
            action->setChecked(group->actions().isEmpty());
            group->addAction(action);
        }
    };
    choices(tr("Scale spans"), {{tr("round numbers"), [this] { setClip(Clip::usual); }},
                                {tr("all values"), [this] { setClip(Clip::all); }},
                                {tr("1 % to 99 %"), [this] { setClip(Clip::one_percent); }},
                                {tr("5 % to 95 %"), [this] { setClip(Clip::five_percent); }}});
    choices(tr("Colours"), {{tr("two where values are below 0"), [this] { setCentre(Centre::automatic); }},
                            {tr("one map from low to high"), [this] { setCentre(Centre::none); }},
                            {tr("two, divided at 0"), [this] { setCentre(Centre::zero); }},
                            {tr("two, divided at the median"), [this] { setCentre(Centre::median); }},
                            {tr("two, divided at…"), [this] { askForCentre(); }}});
    QAction* lock = menu->addAction(tr("Hold the scale"));
    lock->setCheckable(true);
    lock->setToolTip(tr("It stays through other signals and runs, so that panels compare"));
    connect(lock, &QAction::toggled, this, &MapOptions::setScaleLocked);
    menu->addSeparator();
    using Order = StepMapCanvas::Order;
    const auto ordered = [this](Order wanted) {
        return [this, wanted] {
            order_ = wanted;
            canvas_.setOrder(order_, group_);
        };
    };
    choices(tr("Rows"), {{tr("as recorded"), ordered(Order::recorded)},
                         {tr("last first"), ordered(Order::reversed)},
                         {tr("by their mean"), ordered(Order::by_mean)}});
    const auto grouped = [this](int wanted) {
        return [this, wanted] {
            group_ = wanted;
            canvas_.setOrder(order_, group_);
        };
    };
    choices(tr("Rows in one"),
            {{tr("1"), grouped(1)}, {tr("2"), grouped(2)}, {tr("4"), grouped(4)}, {tr("8"), grouped(8)}});
    setMenu(menu);
}

} // namespace ponderscope
