// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/map_header.h"

#include "views/chart/scale_bar.h"
#include "views/common/colour_ranges.h"
#include "views/common/controls.h"
#include "views/common/theme.h"
#include "views/heatmap/step_map_canvas.h"

#include <QToolButton>

using namespace Qt::StringLiterals;

namespace ponderscope {

MapHeader::MapHeader(Theme& theme, StepMapCanvas& canvas, const QString& name, const QString& tip,
                     QWidget* parent)
    : QWidget(parent),
      theme_(theme),
      canvas_(canvas),
      line_(new FlowLayout(this)),
      chooser_(make_chooser(name, tip, this)),
      scale_(new ScaleBar(theme, this)),
      readout_(new Readout(theme, this)) {
    line_->setContentsMargins(0, 0, 0, 0);
    line_->setSpacing(12);
    line_->addWidget(chooser_);
    line_->addWidget(scale_);
    line_->addWidget(readout_);
    theme_.dress(this, [this] { chooser_->setFont(theme_.strong()); });
}

void MapHeader::showScale(const QString& unit, bool halted) {
    unit_ = unit;
    halted_ = halted;
    if (canvas_.map() == nullptr) {
        scale_->clear();
        return;
    }
    canvas_.fitScale(ranges_ == nullptr ? HeldRange() : ranges_->held(signalName()));
    scale_->setLook(canvas_.look(), unit, halted);
}

void MapHeader::setRanges(ColourRanges& ranges) {
    ranges_ = &ranges;
    connect(&ranges, &ColourRanges::changed, this, [this] { showScale(unit_, halted_); });
    auto* ends = flat_button(u"Set Ends of the Scale…"_s,
                             u"Sets the ends of the scale for this signal, in every map and run"_s, this);
    theme_.dress(ends, [this, ends] { ends->setFont(theme_.small()); });
    connect(ends, &QToolButton::clicked, this, [this] {
        if (canvas_.map() != nullptr) {
            HeldRange range = ranges_->held(signalName());
            if (ask_for_range(window(), canvas_.scale(), range)) {
                ranges_->hold(signalName(), range);
            }
        }
    });
    line_->insertWidget(2, ends); // after the scale
}

QString MapHeader::signalName() const {
    return QString::fromStdString(canvas_.map()->info().name);
}

void MapHeader::clear() {
    scale_->clear();
    setReadout({});
}

} // namespace ponderscope
